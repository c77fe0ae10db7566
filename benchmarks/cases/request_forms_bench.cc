// Measures what reading a request for predictions costs in each form, beside a copy of its body.
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "benchmarks/bench.h"
#include "common/platform/random.h"
#include "tools/serve/requests/request_forms.h"

namespace hdps {
namespace {

constexpr char kBench[] = "request_forms";
constexpr size_t kRows = 32, kNumeric = 13, kCategorical = 26;  // As in Criteo's data.

struct Column {
  std::string name;
  std::vector<float> numbers;
  std::vector<std::string> texts;  // Not empty: the column is of texts.
};

std::vector<Column> MakeColumns() {
  Random random(1);
  std::vector<Column> columns;
  for (size_t c = 0; c < kNumeric + kCategorical; ++c) {
    const bool numeric = c < kNumeric;
    Column& column = columns.emplace_back();
    column.name = (numeric ? "I" : "C") + std::to_string(numeric ? c + 1 : c + 1 - kNumeric);
    for (size_t row = 0; row < kRows; ++row) {
      if (numeric) {
        column.numbers.push_back(static_cast<float>(random.Below(100'000)));
      } else {
        constexpr uint64_t kEightDigits = 100'000'000;
        const std::string digits = std::to_string(kEightDigits + random.Below(kEightDigits * 9));
        column.texts.push_back(digits.substr(0, 8));
      }
    }
  }
  return columns;
}

ModelNote ModelOf(const std::vector<Column>& columns) {
  ModelNote model;
  for (const Column& column : columns) {
    model.inputs.push_back({column.name, column.texts.empty() ? "FP32" : "BYTES"});
  }
  return model;
}

std::string CellOf(const Column& column, size_t row) {
  if (!column.texts.empty()) return '"' + column.texts[row] + '"';
  return std::to_string(static_cast<int>(column.numbers[row]));
}

std::string Tensor(const Column& column) {
  if (column.texts.empty()) {
    return {reinterpret_cast<const char*>(column.numbers.data()), kRows * sizeof(float)};
  }
  std::string bytes;
  for (const std::string& text : column.texts) {
    const auto size = static_cast<uint32_t>(text.size());
    bytes.append(reinterpret_cast<const char*>(&size), sizeof(size)).append(text);
  }
  return bytes;
}

struct Body {
  std::string bytes;
  std::optional<size_t> json_bytes;
};

Body InferBody(const std::vector<Column>& columns, bool binary) {
  std::string json = R"({"inputs":[)", behind;
  for (const Column& column : columns) {
    json += (column.name == columns[0].name ? R"({"name":")" : R"(,{"name":")") + column.name +
            R"(","shape":[)" + std::to_string(kRows) + R"(],"datatype":")" +
            (column.texts.empty() ? "FP32" : "BYTES") + "\",";
    const std::string tensor = Tensor(column);
    if (binary) {
      json += R"("parameters":{"binary_data_size":)" + std::to_string(tensor.size()) + "}}";
      behind += tensor;
      continue;
    }
    json += R"("data":[)";
    for (size_t row = 0; row < kRows; ++row) json += (row > 0 ? "," : "") + CellOf(column, row);
    json += "]}";
  }
  json += "]}";
  return {json + behind, binary ? std::optional(json.size()) : std::nullopt};
}

Body PredictBody(const std::vector<Column>& columns) {
  std::string json = R"({"instances":[)";
  for (size_t row = 0; row < kRows; ++row) {
    json += row > 0 ? ",{" : "{";
    for (const Column& column : columns) {
      json += (column.name == columns[0].name ? "\"" : ",\"") + column.name +
              "\":" + CellOf(column, row);
    }
    json += "}";
  }
  return {json + "]}", std::nullopt};
}

// Returns the microseconds of one call of `work`, the mean of many.
double MicrosecondsOf(uint64_t calls, const std::function<void()>& work) {
  const double seconds = SecondsOf([&] {
    for (uint64_t i = 0; i < calls; ++i) work();
  });
  return seconds * 1e6 / static_cast<double>(calls);
}

}  // namespace

Status RunRequestFormsBench(const BenchSetting& setting, FileSystem&, BenchReport& report) {
  const std::vector<Column> columns = MakeColumns();
  const ModelNote model = ModelOf(columns);
  const auto infer = [&](const Body& body) {
    return ReadInfer(model, body.bytes, body.json_bytes).status();
  };
  const auto predict = [&](const Body& body) { return ReadPredict(model, body.bytes).status(); };
  struct Form {
    const char* name;
    Body body;
    std::function<Status(const Body&)> read;
  };
  const std::vector<Form> forms = {{"json", InferBody(columns, false), infer},
                                   {"binary", InferBody(columns, true), infer},
                                   {"predict", PredictBody(columns), predict}};
  const uint64_t calls = setting.quick ? 200 : 5'000;
  for (const Form& form : forms) {
    if (!setting.Wants(form.name)) continue;
    PrintProgress(kBench, form.name);
    Status status;
    size_t copied = 0;
    const auto read = [&] {
      return MicrosecondsOf(calls, [&] {
        if (status.ok()) status = form.read(form.body);
      });
    };
    const auto copy = [&] {
      return MicrosecondsOf(calls * 10, [&] { copied += std::string(form.body.bytes).size(); });
    };
    const auto samples = InterleavedSamples(setting.repeats, {read, copy});
    HDPS_RETURN_IF_ERROR(status);
    if (copied == 0) return Status(Code::kInvalidArgument, "nothing was copied");
    report.AddBeside(kBench, form.name, "32 rows of 13 + 26 columns", "us", samples[0],
                     "a copy of the body", samples[1]);
  }
  return Status();
}

}  // namespace hdps
