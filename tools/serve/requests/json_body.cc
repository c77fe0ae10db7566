// Reads values of a JSON text, and says why it is none.
#include "tools/serve/requests/json_body.h"

#include <algorithm>
#include <charconv>
#include <iterator>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <utility>

#include "common/base/nearest_name.h"
#include "common/base/outside_text.h"
#include "tools/serve/requests/request_table.h"

namespace hdps {
namespace {

using simdjson::dom::element_type;

// simdjson does not tell the place, so a text that it refuses is read again.
std::string WhyNoJson(std::string_view text, simdjson::error_code code) {
  std::string why = simdjson::error_message(code);
  if (code == simdjson::DEPTH_ERROR) {
    return "it is nested more than " + std::to_string(kJsonDepthMax) + " deep";
  }
  // Keeps nothing, and ends where simdjson does.
  const auto pass = [](int depth, auto, auto&) {
    if (depth > static_cast<int>(kJsonDepthMax)) throw std::length_error("depth");
    return false;
  };
  try {
    [[maybe_unused]] const auto nothing = nlohmann::json::parse(text, pass);
  } catch (const nlohmann::json::parse_error& error) {
    why = error.what();  // "[json.exception.parse_error.101] parse error at line 1, column 9: ..."
    const size_t at = why.find(" at ");
    if (at != std::string::npos) why = why.substr(at + 4);
  } catch (const std::exception&) {  // The message of simdjson says what it does not take.
  }
  return why;
}

Status Wrong(const std::string& place, JsonElement value, const std::string& wanted) {
  return {Code::kInvalidArgument, place + " is " + ShowJson(value) + ": expected " + wanted};
}

template <typename Value>
Result<Value> Get(JsonElement value, const std::string& place, const std::string& wanted) {
  Value got{};
  if (value.get(got) != simdjson::SUCCESS) return Wrong(place, value, wanted);
  return got;
}

template <typename Whole>
bool AddWhole(const Datatype& type, Whole number, InputCells* cells) {
  switch (type.cells) {
    case CellKind::kText: {
      char digits[24];
      const char* const end = std::to_chars(digits, std::end(digits), number).ptr;
      cells->AddText({digits, static_cast<size_t>(end - digits)});
      return true;
    }
    case CellKind::kFloat64:
      cells->AddNumber(static_cast<double>(number));
      return true;
    case CellKind::kInt64:
    case CellKind::kUint64:
      if (std::cmp_less(number, type.lowest) || std::cmp_greater(number, type.highest)) {
        return false;
      }
      cells->AddNumber(number);  // Signed and unsigned ones in their range have the same bits.
      return true;
    default:
      return false;
  }
}

}  // namespace

Result<JsonBody> JsonBody::Parse(std::string* body, size_t bytes) {
  JsonBody json;
  body->reserve(body->size() + simdjson::SIMDJSON_PADDING);  // It reads beyond the end.
  json.parser_ = std::make_unique<simdjson::dom::parser>();
  simdjson::error_code code = json.parser_->allocate(bytes, kJsonDepthMax);
  if (code == simdjson::SUCCESS) {
    code = json.parser_->parse(body->data(), bytes, /*realloc_if_needed=*/false).get(json.root_);
  }
  if (code == simdjson::MEMALLOC) {
    return Status(Code::kResourceExhausted, "there is no memory to read " + std::to_string(bytes) +
                                                " bytes of JSON: send smaller requests");
  }
  if (code != simdjson::SUCCESS) {
    return Status(
        Code::kInvalidArgument,
        "the request is no JSON: " + EscapeUntrusted(WhyNoJson({body->data(), bytes}, code), 400));
  }
  return json;
}

std::string ShowJson(JsonElement value) {
  switch (value.type()) {
    case element_type::ARRAY:
      return "a list";
    case element_type::OBJECT:
      return "an object";
    default:
      return EscapeUntrusted(simdjson::minify(value), 100);
  }
}

Result<std::string_view> JsonText(JsonElement value, const std::string& place) {
  return Get<std::string_view>(value, place, "a text");
}
Result<uint64_t> JsonWhole(JsonElement value, const std::string& place) {
  return Get<uint64_t>(value, place, "a whole number from 0 on");
}
Result<bool> JsonBool(JsonElement value, const std::string& place) {
  return Get<bool>(value, place, "true or false");
}
Result<simdjson::dom::array> JsonList(JsonElement value, const std::string& place) {
  return Get<simdjson::dom::array>(value, place, "a list");
}
Result<simdjson::dom::object> JsonObject(JsonElement value, const std::string& place) {
  return Get<simdjson::dom::object>(value, place, "an object");
}

Result<std::vector<std::optional<JsonElement>>> JsonMembers(
    JsonElement value, const std::string& place, std::initializer_list<std::string_view> names) {
  HDPS_ASSIGN_OR_RETURN(const simdjson::dom::object object, JsonObject(value, place));
  std::vector<std::optional<JsonElement>> members(names.size());
  for (const simdjson::dom::key_value_pair member : object) {
    const auto* const found = std::ranges::find(names, member.key);
    const auto shown = [&] { return "member '" + EscapeUntrusted(member.key, 100) + "'"; };
    if (found == names.end()) {
      const std::vector<std::string> known(names.begin(), names.end());
      std::string all;
      for (const std::string& name : known) all += (all.empty() ? "" : ", ") + name;
      return Status(Code::kInvalidArgument, place + " has the " + shown() + ": expected " + all +
                                                DidYouMean(member.key, known));
    }
    std::optional<JsonElement>& slot = members[static_cast<size_t>(found - names.begin())];
    if (slot) {
      return Status(Code::kInvalidArgument,
                    place + " has the " + shown() + " twice: expected it once");
    }
    slot = member.value;
  }
  return members;
}

bool AddJsonCell(const Datatype& type, JsonElement value, InputCells* cells) {
  switch (value.type()) {
    case element_type::NULL_VALUE:
      cells->AddMissing();
      return true;
    case element_type::STRING:
      if (type.cells != CellKind::kText) return false;
      cells->AddText(value.get_string().value_unsafe());
      return true;
    case element_type::INT64:
      return AddWhole(type, value.get_int64().value_unsafe(), cells);
    case element_type::UINT64:
      return AddWhole(type, value.get_uint64().value_unsafe(), cells);
    case element_type::DOUBLE:
      if (type.cells != CellKind::kFloat64) return false;
      cells->AddNumber(value.get_double().value_unsafe());
      return true;
    case element_type::BOOL:
      if (type.cells != CellKind::kUint8) return false;
      cells->AddNumber(static_cast<uint8_t>(value.get_bool().value_unsafe()));
      return true;
    default:
      return false;
  }
}

Status WrongCell(const InputCells& cells, uint64_t row, JsonElement value,
                 const std::string& wanted) {
  return Wrong(InputPlace(cells.name()) + ", row " + std::to_string(row), value,
               wanted + ", or null where it is missing");
}

}  // namespace hdps
