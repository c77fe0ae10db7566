// Checks shapes before it takes values.
#include "tools/serve/requests/infer_input.h"

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "common/base/outside_text.h"

namespace hdps {
namespace {

// Shape [rows] or, with `is_wide`, [rows, width].
struct Shape {
  uint64_t rows = 0, width = 1;
  bool is_wide = false;

  // Both are small enough that the product fits.
  uint64_t values() const { return rows * width; }
  std::string Text() const {
    return "[" + std::to_string(rows) + (is_wide ? ", " + std::to_string(width) : "") + "]";
  }
};

Result<Shape> ReadShape(JsonElement value, const Place& place) {
  HDPS_ASSIGN_OR_RETURN(const simdjson::dom::array list, JsonList(value, place.Part("the shape")));
  if (list.size() != 1 && list.size() != 2) {
    return Wrong(place, ": the shape has " + std::to_string(list.size()) +
                            " numbers: expected [rows] or [rows, values of a row]");
  }
  Shape shape = {.is_wide = list.size() == 2};
  const Place size = place.Part("a size of the shape");
  HDPS_ASSIGN_OR_RETURN(shape.rows, JsonWhole(*list.begin(), size));
  HDPS_RETURN_IF_ERROR(CheckRows(place, shape.rows));
  if (!shape.is_wide) return shape;
  HDPS_ASSIGN_OR_RETURN(shape.width, JsonWhole(list.at(1).value_unsafe(), size));
  if (shape.width > 0 && shape.width <= kRequestBytesMax) return shape;
  return Wrong(place, ": the shape has " + std::to_string(shape.width) +
                          " values a row: expected 1 to " + std::to_string(kRequestBytesMax));
}

Result<const Datatype*> ReadDatatype(JsonElement value, const Place& place) {
  HDPS_ASSIGN_OR_RETURN(const std::string_view name, JsonText(value, place.Part("the datatype")));
  if (const Datatype* found = FindDatatype(name)) return found;
  return Wrong(place, " has the datatype '" + EscapeUntrusted(name, 100) + "': expected one of " +
                          DatatypeNames());
}

// Checks the number of values in a list of the data.
Status CheckCount(uint64_t count, uint64_t wanted, const Shape& shape, const Place& place) {
  if (count == wanted) return {};
  return Wrong(place, " has " + std::to_string(count) + " values: expected " +
                          std::to_string(wanted) + " by the shape " + shape.Text());
}

Status AddList(const Datatype& type, simdjson::dom::array list, const Shape& shape, uint64_t row,
               InputCells* cells) {
  uint64_t column = 0;
  for (const JsonElement value : list) {
    if (!AddJsonCell(type, value, cells)) {
      return WrongCell(*cells, row, value, type.Wanted());
    }
    if (++column < shape.width) continue;
    column = 0;
    ++row;
  }
  return {};
}

Status ReadJsonData(const Datatype& type, const Shape& shape, JsonElement data, const Place& place,
                    InputCells* cells) {
  HDPS_ASSIGN_OR_RETURN(const simdjson::dom::array list, JsonList(data, place.Part("the data")));
  const bool nested = list.size() > 0 && (*list.begin()).is_array();
  if (!nested || !shape.is_wide) {
    HDPS_RETURN_IF_ERROR(CheckCount(list.size(), shape.values(), shape, place));
    cells->Reserve(shape.values());
    return AddList(type, list, shape, 0, cells);
  }
  HDPS_RETURN_IF_ERROR(CheckCount(list.size(), shape.rows, shape, place));
  uint64_t row = 0;
  for (const JsonElement values : list) {
    const Place here = place.Row(row);
    HDPS_ASSIGN_OR_RETURN(const simdjson::dom::array of_row, JsonList(values, here));
    HDPS_RETURN_IF_ERROR(CheckCount(of_row.size(), shape.width, shape, here));
    HDPS_RETURN_IF_ERROR(AddList(type, of_row, shape, row++, cells));
  }
  return {};
}

// Reads texts, each behind its length.
Status ReadTexts(std::string_view bytes, const Shape& shape, const Place& place,
                 InputCells* cells) {
  uint32_t size = 0;
  const auto texts = [&] {
    return "expected " + std::to_string(shape.values()) + " texts by the shape " + shape.Text();
  };
  cells->Reserve(std::min<uint64_t>(shape.values(), bytes.size() / sizeof(size)));
  for (uint64_t i = 0; i < shape.values(); ++i) {
    if (bytes.size() < sizeof(size)) {
      return Wrong(place.Row(i / shape.width), ": its data end before the text: " + texts());
    }
    std::memcpy(&size, bytes.data(), sizeof(size));
    bytes.remove_prefix(sizeof(size));
    if (size > bytes.size()) {
      return Wrong(place.Row(i / shape.width),
                   ": the text has " + std::to_string(size) + " bytes: expected at most the " +
                       std::to_string(bytes.size()) + " that are left of the input");
    }
    cells->AddText(bytes.substr(0, size));
    bytes.remove_prefix(size);
  }
  if (bytes.empty()) return {};
  return Wrong(place, ": its data have " + std::to_string(bytes.size()) +
                          " bytes behind the last text: " + texts());
}

Status ReadBinaryData(const Datatype& type, const Shape& shape, JsonElement size_text,
                      const Place& place, std::string_view* binary, InputCells* cells) {
  HDPS_ASSIGN_OR_RETURN(const uint64_t size, JsonWhole(size_text, place.Part("binary_data_size")));
  const auto wrong_size = [&](const std::string& expected) {
    return Wrong(place.Part("binary_data_size"),
                 " is " + std::to_string(size) + ": expected " + expected);
  };
  if (size > binary->size()) {
    return wrong_size("at most the " + std::to_string(binary->size()) +
                      " bytes that are left behind the JSON");
  }
  const std::string_view bytes = binary->substr(0, size);
  binary->remove_prefix(size);
  if (type.bytes == 0) return ReadTexts(bytes, shape, place, cells);
  if (size != shape.values() * type.bytes) {
    return wrong_size(std::to_string(shape.values() * type.bytes) + " by the shape " +
                      shape.Text() + " of " + std::string(type.name));
  }
  if (type.is_bool()) {
    const size_t at = bytes.find_first_not_of(std::string_view("\0\1", 2));
    if (at != std::string_view::npos) {
      return Wrong(place.Row(at / shape.width),
                   ": a byte of BOOL is " + std::to_string(static_cast<unsigned char>(bytes[at])) +
                       ": expected 0 or 1");
    }
  }
  cells->TakeInPlace(bytes.data(), shape.values());
  return {};
}

}  // namespace

Result<std::optional<JsonElement>> JsonParameter(const std::optional<JsonElement>& parameters,
                                                 std::string_view name, const Place& place) {
  if (!parameters) return std::optional<JsonElement>();
  HDPS_ASSIGN_OR_RETURN(const simdjson::dom::object object,
                        JsonObject(*parameters, place.Part("parameters")));
  JsonElement value;
  const bool there = object.at_key(name).get(value) == simdjson::SUCCESS && !value.is_null();
  return there ? std::optional(value) : std::nullopt;
}

Status ReadInferInput(const ModelNote& model, JsonElement input, size_t index,
                      std::optional<std::string_view>* binary, RequestTable* table) {
  const Place which = {.what = "inputs", .index = static_cast<int64_t>(index)};
  HDPS_ASSIGN_OR_RETURN(
      const auto members,
      JsonMembers(input, which, {"name", "shape", "datatype", "data", "parameters"}));
  if (!members[0]) return Wrong(which, " has no name: expected the name of an input");
  HDPS_ASSIGN_OR_RETURN(const std::string_view name, JsonText(*members[0], which.Part("the name")));
  HDPS_RETURN_IF_ERROR(InputNote(model, name).status());
  const Place place = InputPlace(name);
  if (!members[1] || !members[2]) {
    return Wrong(place, std::string(" has no ") + (members[1] ? "datatype" : "shape") +
                            ": expected name, shape, datatype and data");
  }
  HDPS_ASSIGN_OR_RETURN(const Shape shape, ReadShape(*members[1], place));
  HDPS_ASSIGN_OR_RETURN(const Datatype* const type, ReadDatatype(*members[2], place));
  HDPS_ASSIGN_OR_RETURN(const std::optional<JsonElement> size,
                        JsonParameter(members[4], "binary_data_size", place));
  if (members[3].has_value() == size.has_value()) {
    return Wrong(place, std::string(" has ") + (size ? "both data and" : "neither data nor") +
                            " the parameter binary_data_size: expected one of them");
  }
  if (size && !*binary) {
    return Wrong(place,
                 " has binary_data_size, but there are no bytes behind the JSON: expected the "
                 "header Inference-Header-Content-Length, the length of the JSON");
  }
  HDPS_ASSIGN_OR_RETURN(InputCells* const cells,
                        table->Add(name, size ? type->binary : type->cells, type->name));
  HDPS_RETURN_IF_ERROR(size ? ReadBinaryData(*type, shape, *size, place, &**binary, cells)
                            : ReadJsonData(*type, shape, *members[3], place, cells));
  if (shape.width > 1) cells->SplitIntoLists(shape.width);
  return {};
}

}  // namespace hdps
