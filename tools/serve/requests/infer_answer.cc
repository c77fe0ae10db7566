// Writes JSON, and binary tensors behind it.
#include "tools/serve/requests/infer_answer.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "tools/serve/requests/answer_columns.h"
#include "tools/serve/requests/json_text.h"

namespace hdps {
namespace {

std::string BinaryOf(const OutputColumn& column) {
  if (column.texts.empty()) {
    return {reinterpret_cast<const char*>(column.numbers.data()),
            column.numbers.size() * sizeof(float)};
  }
  std::string bytes;
  for (const std::string& text : column.texts) {
    const auto size = static_cast<uint32_t>(text.size());
    bytes.append(reinterpret_cast<const char*>(&size), sizeof(size)).append(text);
  }
  return bytes;
}

void AppendOutput(const OutputColumn& column, uint64_t rows, bool binary, std::string* json,
                  std::string* behind) {
  *json += R"({"name":)" + JsonQuoted(column.name) + R"(,"shape":[)" + std::to_string(rows);
  if (HasWidth(column)) *json += "," + std::to_string(column.width);
  *json += R"(],"datatype":")" + std::string(column.texts.empty() ? "FP32" : "BYTES") + "\",";
  if (binary) {
    const std::string bytes = BinaryOf(column);
    *json += R"("parameters":{"binary_data_size":)" + std::to_string(bytes.size()) + "}}";
    *behind += bytes;
    return;
  }
  *json += R"("data":[)";
  for (uint64_t i = 0; i < rows * column.width; ++i) {
    if (i > 0) *json += ',';
    AppendJsonValue(column, i, json);
  }
  *json += "]}";
}

}  // namespace

bool InferAnswer::IsBinary(const std::string& column) const {
  if (names.empty()) return all_binary;
  // Scores that come with the output top_k go where its texts go.
  auto found = std::ranges::find(names, column);
  if (found == names.end()) found = std::ranges::find(names, "top_k");
  return found != names.end() && binary[static_cast<size_t>(found - names.begin())];
}

WrittenAnswer InferAnswer::Write(const ScoreAnswer& answer) const {
  std::string json = R"({"model_name":)" + JsonQuoted(model) + R"(,"model_version":")" +
                     std::to_string(answer.step) + '"';
  if (!id.empty()) json += R"(,"id":)" + id;
  json += R"(,"outputs":[)";
  std::string behind;
  bool any_binary = false, first = true;
  const auto append = [&](const OutputColumn* column, bool as_binary) {
    if (!first) json += ',';
    first = false;
    any_binary |= as_binary;
    AppendOutput(*column, answer.rows, as_binary, &json, &behind);
  };
  for (const OutputColumn* column : ColumnsOf(answer, names)) {
    append(column, IsBinary(column->name));
  }
  json += "]}";
  if (!any_binary) return {"application/json", std::move(json)};
  const std::string json_bytes = std::to_string(json.size());
  return {
      "application/octet-stream", json + behind, {{"Inference-Header-Content-Length", json_bytes}}};
}

}  // namespace hdps
