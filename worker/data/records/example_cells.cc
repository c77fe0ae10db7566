// Parses examples by libprotobuf.
#include <algorithm>
#include <memory>
#include <string>
#include <utility>

#include "common/base/outside_text.h"
#include "worker/data/records/record_cells.h"
#include "worker/data/records/record_fields.h"
#include "worker/data/records/row_cells.h"
#ifdef HDPS_WITH_TFRECORD
#include "tf_example.pb.h"
#endif

namespace hdps {

#ifdef HDPS_WITH_TFRECORD

namespace {

using tf_example::Example;
using tf_example::Feature;

bool ParseExample(std::string_view record, Example* example) {
  return example->ParseFromArray(record.data(), static_cast<int>(record.size()));
}

int NumKinds(const Feature& feature) {
  return feature.has_bytes_list() + feature.has_float_list() + feature.has_int64_list();
}

int NumValues(const Feature& feature) {
  return feature.bytes_list().value_size() + feature.float_list().value_size() +
         feature.int64_list().value_size();
}

void AddValue(const Feature& feature, int index, CellLineWriter* line) {
  if (feature.has_bytes_list()) line->AddText(feature.bytes_list().value(index));
  if (feature.has_float_list()) line->AddFloat(feature.float_list().value(index));
  if (feature.has_int64_list()) line->AddInteger(feature.int64_list().value(index));
}

class ExampleCells : public RecordCells {
 public:
  ExampleCells(const DataSpec& data, bool labels_read) : cells_(data, labels_read) {}

  std::optional<RowError> Write(std::string_view record, CellLineWriter* line) override {
    cells_.Clear();
    if (!ParseExample(record, &example_)) {
      return RowError{record.substr(0, kBytesShown), {}, "a tf.train.Example"};
    }
    for (const tf_example::NamedFeature& named : example_.features().feature()) {
      const size_t cell = cells_.Find(named.name());
      if (cell == RowCells::kNone) continue;
      if (!cells_.BeginCell(cell)) {
        return RowError{{}, cells_.name(cell), "one feature of this name"};
      }
      if (auto error = AddCell(cell, named.feature())) return error;
    }
    cells_.WriteTo(line);
    return std::nullopt;
  }

 private:
  static constexpr size_t kBytesShown = 40;

  std::optional<RowError> AddCell(size_t cell, const Feature& feature) {
    if (NumKinds(feature) > 1) return RowError{{}, cells_.name(cell), "values of one kind"};
    const int count = NumValues(feature);
    if (count == 0) return std::nullopt;
    const bool list = count > 1 || cells_.multi(cell);
    std::string_view why = list ? cells_.WhyNot(cell, RecordValue::kList) : "";
    if (feature.has_float_list() && why.empty()) {
      why = cells_.WhyNot(cell, list ? RecordValue::kFractions : RecordValue::kFraction);
    }
    if (!why.empty()) {
      if (cells_.ignored(cell)) return std::nullopt;
      type_ = list ? "a list of " + std::to_string(count) : "a float";
      return RowError{type_, cells_.name(cell), why};
    }
    CellLineWriter& values = cells_.values();
    const size_t begin = list ? values.BeginList() : 0;
    for (int i = 0; i < count; ++i) AddValue(feature, i, &values);
    if (list) values.EndList(begin);
    cells_.EndCell();
    return std::nullopt;
  }

  RowCells cells_;
  Example example_;   // Of the current record; it keeps its memory for the next.
  std::string type_;  // Of the value in an error.
};

}  // namespace

std::unique_ptr<RecordCells> NewExampleCells(const DataSpec& data, bool labels_read) {
  return std::make_unique<ExampleCells>(data, labels_read);
}

std::vector<RecordField> FieldsOfExample(std::string_view record) {
  std::vector<RecordField> fields;
  Example example;
  if (!ParseExample(record, &example)) return fields;
  for (const tf_example::NamedFeature& named : example.features().feature()) {
    const int count = NumValues(named.feature());
    if (count == 0) continue;
    fields.push_back({named.name(), count > 1, named.feature().has_float_list(), false});
  }
  // A map has no order.
  std::ranges::sort(fields, {}, &RecordField::name);
  return fields;
}

#else

namespace {

// Stands for the reader in a build that opens no TFRecord file.
class NoExampleCells : public RecordCells {
 public:
  std::optional<RowError> Write(std::string_view, CellLineWriter*) override {
    return RowError{{}, {}, "a build of hdps that reads tfrecord"};
  }
};

}  // namespace

std::unique_ptr<RecordCells> NewExampleCells(const DataSpec&, bool) {
  return std::make_unique<NoExampleCells>();
}

std::vector<RecordField> FieldsOfExample(std::string_view) { return {}; }

#endif

}  // namespace hdps
