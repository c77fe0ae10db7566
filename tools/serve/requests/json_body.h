// Parses the JSON of a request, by simdjson.
#pragma once

#include <simdjson.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "common/base/status.h"
#include "tools/serve/requests/datatypes.h"
#include "tools/serve/requests/input_cells.h"
#include "tools/serve/requests/request_place.h"

namespace hdps {

inline constexpr size_t kJsonDepthMax = 64;

using JsonElement = simdjson::dom::element;

// A JSON text whose texts and numbers were all read.
//
// Each thread keeps the parser of its last text, unless that was large: new memory for one costs
// more than the parsing.
class JsonBody {
 public:
  // Parses the first `bytes` of `body`, whose capacity grows; nothing of the result lies in it. It
  // takes up to 14 times as many bytes. kInvalidArgument says where and why it is no JSON.
  static Result<JsonBody> Parse(std::string* body, size_t bytes);

  JsonBody(JsonBody&&) = default;
  ~JsonBody();

  JsonElement root() const { return root_; }

 private:
  JsonBody();

  std::unique_ptr<simdjson::dom::parser> parser_;  // Has the text of `root_`.
  JsonElement root_;
};

// Returns the value as a message shows it: short, on one line.
std::string ShowJson(JsonElement value);

// Return the value, or kInvalidArgument: "PLACE is VALUE: expected a list".
Result<std::string_view> JsonText(JsonElement value, const Place& place);
Result<uint64_t> JsonWhole(JsonElement value, const Place& place);
Result<bool> JsonBool(JsonElement value, const Place& place);
Result<simdjson::dom::array> JsonList(JsonElement value, const Place& place);
Result<simdjson::dom::object> JsonObject(JsonElement value, const Place& place);

// Finds the members of an object with these names, in their order; null is as good as none, because
// some clients write it. kInvalidArgument if it is no object, has another member, or one of these
// twice.
Status FindJsonMembers(JsonElement value, const Place& place,
                       std::span<const std::string_view> names,
                       std::span<std::optional<JsonElement>> members);
template <size_t n>
Result<std::array<std::optional<JsonElement>, n>> JsonMembers(JsonElement value, const Place& place,
                                                              const std::string_view (&names)[n]) {
  std::array<std::optional<JsonElement>, n> members;
  HDPS_RETURN_IF_ERROR(FindJsonMembers(value, place, names, members));
  return members;
}

// Appends a cell, where null is missing. Returns false, and appends nothing, if the value is none
// of the type.
bool AddJsonCell(const Datatype& type, JsonElement value, InputCells* cells);
// kInvalidArgument for a value that AddJsonCell() did not take.
Status WrongCell(const InputCells& cells, uint64_t row, JsonElement value,
                 const std::string& wanted);

}  // namespace hdps
