// Reads requests of TensorFlow Serving's :predict.
#include <algorithm>
#include <utility>
#include <vector>

#include "common/base/outside_text.h"
#include "tools/serve/requests/answer_columns.h"
#include "tools/serve/requests/json_body.h"
#include "tools/serve/requests/json_text.h"
#include "tools/serve/requests/request_forms.h"
#include "tools/serve/requests/request_table.h"

namespace hdps {
namespace {

constexpr Place kRequest = {"the request"}, kInstances = {"instances"}, kInputs = {"inputs"};

// An input with the datatype that the model tells.
struct Input {
  InputCells* cells;
  const Datatype* type;

  // Appends a row: a value, or a list of them if all rows have lists.
  Status AddRow(JsonElement value) const {
    const uint64_t row = cells->rows();
    simdjson::dom::array list;
    const bool is_list = value.get(list) == simdjson::SUCCESS;
    if (is_list && !cells->MakeLists()) {
      return WrongCell(*cells, row, value, "one value, as in the rows before");
    }
    if (!cells->has_lists()) {
      if (AddJsonCell(*type, value, cells)) return {};
      return WrongCell(*cells, row, value, type->Wanted());
    }
    if (!is_list && !value.is_null()) {
      return WrongCell(*cells, row, value, "a list, as in the rows before");
    }
    if (is_list) {
      for (const JsonElement cell : list) {
        if (!AddJsonCell(*type, cell, cells)) return WrongCell(*cells, row, cell, type->Wanted());
      }
    }
    cells->EndList();
    return {};
  }
};

Result<Input> AddInput(const ModelNote& model, std::string_view name, RequestTable* table) {
  HDPS_ASSIGN_OR_RETURN(const TensorNote* const note, InputNote(model, name));
  const Datatype* const type = FindDatatype(note->datatype);
  if (type == nullptr) {
    return Wrong(InputPlace(name),
                 " has the datatype " + note->datatype + ": expected one of " + DatatypeNames());
  }
  HDPS_ASSIGN_OR_RETURN(InputCells* const cells, table->Add(name, type->cells, type->name));
  constexpr uint64_t kUsualRows = 64;
  cells->Reserve(kUsualRows);
  return Input{cells, type};
}

// Returns the only input of a model, whose values come without a name.
Result<Input> AddOnlyInput(const ModelNote& model, const Place& place, RequestTable* table) {
  if (model.inputs.size() == 1) return AddInput(model, model.inputs[0].name, table);
  return Wrong(place, " has values without names: expected an object with some of the " +
                          std::to_string(model.inputs.size()) + " inputs by name");
}

// Reads rows that are objects of inputs by name, the same in each row.
class RowReader {
 public:
  RowReader(const ModelNote& model, RequestTable* table) : model_(model), table_(table) {}

  Status Add(JsonElement element) {
    const Place place = {.what = "instances", .index = static_cast<int64_t>(row_)};
    HDPS_ASSIGN_OR_RETURN(const simdjson::dom::object object, JsonObject(element, place));
    size_t count = 0;
    for (const simdjson::dom::key_value_pair member : object) {
      HDPS_ASSIGN_OR_RETURN(const Input* const input, Find(member.key, count, place));
      if (input->cells->rows() > row_) {
        return Wrong(place,
                     " has the " + InputPlace(member.key).Text() + " twice: expected it once");
      }
      HDPS_RETURN_IF_ERROR(input->AddRow(member.value));
      ++count;
    }
    if (count == 0) return Wrong(place, " is an empty object: expected some inputs by name");
    if (count < inputs_.size()) {
      const auto missing =
          std::ranges::find(inputs_, row_, [](const Input& input) { return input.cells->rows(); });
      return Wrong(place,
                   " lacks the " + InputPlace(missing->cells->name()).Text() +
                       ", which instances[0] has: expected a value, or null where it is missing");
    }
    ++row_;
    return {};
  }

 private:
  // `likely` is the input's index, if members come in the order of the first row.
  Result<const Input*> Find(std::string_view name, size_t likely, const Place& place) {
    if (likely < inputs_.size() && inputs_[likely].cells->name() == name) return &inputs_[likely];
    for (const Input& input : inputs_) {
      if (input.cells->name() == name) return &input;
    }
    if (row_ > 0) {
      HDPS_RETURN_IF_ERROR(InputNote(model_, name).status());
      return Wrong(place, " has the " + InputPlace(name).Text() +
                              ", which instances[0] lacks: expected the same inputs in each row");
    }
    HDPS_ASSIGN_OR_RETURN(const Input added, AddInput(model_, name, table_));
    inputs_.push_back(added);
    return &inputs_.back();
  }

  const ModelNote& model_;
  RequestTable* const table_;
  std::vector<Input> inputs_;
  uint64_t row_ = 0;
};

Status ReadInstances(const ModelNote& model, JsonElement instances, RequestTable* table) {
  HDPS_ASSIGN_OR_RETURN(const simdjson::dom::array list, JsonList(instances, kInstances));
  HDPS_RETURN_IF_ERROR(CheckRows(kInstances, list.size()));
  if (list.size() == 0) return Wrong(kInstances, " is an empty list: expected at least one row");
  if ((*list.begin()).is_object()) {
    RowReader rows(model, table);
    for (const JsonElement row : list) HDPS_RETURN_IF_ERROR(rows.Add(row));
    return {};
  }
  HDPS_ASSIGN_OR_RETURN(const Input input, AddOnlyInput(model, kInstances, table));
  for (const JsonElement value : list) HDPS_RETURN_IF_ERROR(input.AddRow(value));
  return {};
}

Status ReadColumn(const Input& input, JsonElement values) {
  const Place place = InputPlace(input.cells->name());
  HDPS_ASSIGN_OR_RETURN(const simdjson::dom::array list, JsonList(values, place));
  HDPS_RETURN_IF_ERROR(CheckRows(place, list.size()));
  for (const JsonElement value : list) HDPS_RETURN_IF_ERROR(input.AddRow(value));
  return {};
}

Status ReadColumns(const ModelNote& model, JsonElement inputs, RequestTable* table) {
  if (inputs.is_array()) {
    HDPS_ASSIGN_OR_RETURN(const Input input, AddOnlyInput(model, kInputs, table));
    return ReadColumn(input, inputs);
  }
  HDPS_ASSIGN_OR_RETURN(const simdjson::dom::object object, JsonObject(inputs, kInputs));
  for (const simdjson::dom::key_value_pair member : object) {
    HDPS_ASSIGN_OR_RETURN(const Input input, AddInput(model, member.key, table));
    HDPS_RETURN_IF_ERROR(ReadColumn(input, member.value));
  }
  return {};
}

// Reads inputs that all rows share.
Status ReadContext(const ModelNote& model, JsonElement context, RequestTable* table) {
  HDPS_ASSIGN_OR_RETURN(const simdjson::dom::object object, JsonObject(context, {"context"}));
  for (const simdjson::dom::key_value_pair member : object) {
    HDPS_ASSIGN_OR_RETURN(const Input input, AddInput(model, member.key, table));
    HDPS_RETURN_IF_ERROR(input.AddRow(member.value));
  }
  return {};
}

// A row of several outputs is an object; a single output has no name.
WrittenAnswer WriteRows(const ScoreAnswer& answer) {
  const std::vector<const OutputColumn*> columns = ColumnsOf(answer, {});
  std::string json = R"({"predictions":[)";
  for (uint64_t row = 0; row < answer.rows; ++row) {
    if (row > 0) json += ',';
    if (columns.size() != 1) json += '{';
    for (const OutputColumn* column : columns) {
      if (column != columns[0]) json += ',';
      if (columns.size() != 1) json += JsonQuoted(column->name) + ":";
      AppendJsonRow(*column, row, &json);
    }
    if (columns.size() != 1) json += '}';
  }
  json += R"(],"model_version":")" + std::to_string(answer.step) + "\"}";
  return {"application/json", std::move(json)};
}

WrittenAnswer WriteColumns(const ScoreAnswer& answer) {
  const std::vector<const OutputColumn*> columns = ColumnsOf(answer, {});
  std::string json = R"({"outputs":)";
  if (columns.size() != 1) json += '{';
  for (const OutputColumn* column : columns) {
    if (column != columns[0]) json += ',';
    if (columns.size() != 1) json += JsonQuoted(column->name) + ":";
    json += '[';
    for (uint64_t row = 0; row < answer.rows; ++row) {
      if (row > 0) json += ',';
      AppendJsonRow(*column, row, &json);
    }
    json += ']';
  }
  if (columns.size() != 1) json += '}';
  json += R"(,"model_version":")" + std::to_string(answer.step) + "\"}";
  return {"application/json", std::move(json)};
}

}  // namespace

Result<AskedScore> ReadPredict(const ModelNote& model, std::string body) {
  HDPS_RETURN_IF_ERROR(CheckBytes(body.size()));
  HDPS_ASSIGN_OR_RETURN(const JsonBody json, JsonBody::Parse(&body, body.size()));
  HDPS_ASSIGN_OR_RETURN(
      const auto members,
      JsonMembers(json.root(), kRequest, {"instances", "inputs", "context", "signature_name"}));
  if (members[0].has_value() == members[1].has_value()) {
    return Wrong(kRequest, std::string(" has ") + (members[0] ? "both" : "neither") +
                               " \"instances\" and \"inputs\": expected one of them");
  }
  if (members[3]) {
    HDPS_ASSIGN_OR_RETURN(const std::string_view name, JsonText(*members[3], {"signature_name"}));
    if (name != "serving_default") {
      return Wrong({"signature_name"},
                   " is '" + EscapeUntrusted(name, 100) + "': expected \"serving_default\"");
    }
  }
  RequestTable table({});
  HDPS_RETURN_IF_ERROR(members[0] ? ReadInstances(model, *members[0], &table)
                                  : ReadColumns(model, *members[1], &table));
  if (members[2]) HDPS_RETURN_IF_ERROR(ReadContext(model, *members[2], &table));
  ScoreRequest request;
  HDPS_ASSIGN_OR_RETURN(request.rows, table.Finish());
  return AskedScore{std::move(request), members[0] ? WriteRows : WriteColumns};
}

}  // namespace hdps
