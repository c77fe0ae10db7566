// Looks at a tree of nlohmann's parser, which keeps the order of names.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "worker/data/records/record_fields.h"

namespace hdps {
namespace {

using Json = nlohmann::ordered_json;

void AddValue(const Json& value, RecordField* field) {
  field->fraction = field->fraction || value.is_number_float();
  field->other = field->other || value.is_structured();
}

Json ParsedOrDiscarded(std::string_view line) {
  return Json::parse(line, nullptr, /*allow_exceptions=*/false);
}

}  // namespace

std::vector<RecordField> FieldsOfJson(std::string_view line) {
  std::vector<RecordField> fields;
  const Json object = ParsedOrDiscarded(line);
  if (!object.is_object()) return fields;
  for (const auto& [name, value] : object.items()) {
    if (value.is_null()) continue;
    RecordField field{.name = name};
    field.list = value.is_array();
    if (!field.list) AddValue(value, &field);
    for (size_t i = 0; field.list && i < value.size(); ++i) AddValue(value[i], &field);
    fields.push_back(field);
  }
  return fields;
}

bool IsJsonObject(std::string_view line) { return ParsedOrDiscarded(line).is_object(); }

}  // namespace hdps
