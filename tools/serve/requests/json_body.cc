// Reads values of a JSON text, and says why it is none.
#include "tools/serve/requests/json_body.h"

#include <algorithm>
#include <charconv>
#include <iterator>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <utility>
#include <vector>

#include "common/base/nearest_name.h"
#include "common/base/outside_text.h"

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

Status WrongValue(const Place& place, JsonElement value, const std::string& wanted) {
  return Wrong(place, " is " + ShowJson(value) + ": expected " + wanted);
}

template <typename Value>
Result<Value> Get(JsonElement value, const Place& place, const char* wanted) {
  Value got{};
  if (value.get(got) != simdjson::SUCCESS) return WrongValue(place, value, wanted);
  return got;
}

// A larger one is not worth its memory.
constexpr size_t kKeptBytesMax = 256 << 10;
thread_local std::unique_ptr<simdjson::dom::parser> kept_parser;

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

JsonBody::JsonBody() : parser_(std::move(kept_parser)) {}

JsonBody::~JsonBody() {
  if (parser_ != nullptr && parser_->capacity() <= kKeptBytesMax) kept_parser = std::move(parser_);
}

Result<JsonBody> JsonBody::Parse(std::string* body, size_t bytes) {
  JsonBody json;
  body->reserve(body->size() + simdjson::SIMDJSON_PADDING);  // It reads beyond the end.
  simdjson::error_code code = simdjson::SUCCESS;
  if (json.parser_ == nullptr) {
    json.parser_ = std::make_unique<simdjson::dom::parser>();
    code = json.parser_->allocate(bytes, kJsonDepthMax);
  }
  if (code == simdjson::SUCCESS) {
    code = json.parser_->parse(body->data(), bytes, /*realloc_if_needed=*/false).get(json.root_);
  }
  if (code == simdjson::MEMALLOC) {
    json.parser_.reset();
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

Result<std::string_view> JsonText(JsonElement value, const Place& place) {
  return Get<std::string_view>(value, place, "a text");
}
Result<uint64_t> JsonWhole(JsonElement value, const Place& place) {
  return Get<uint64_t>(value, place, "a whole number from 0 on");
}
Result<bool> JsonBool(JsonElement value, const Place& place) {
  return Get<bool>(value, place, "true or false");
}
Result<simdjson::dom::array> JsonList(JsonElement value, const Place& place) {
  return Get<simdjson::dom::array>(value, place, "a list");
}
Result<simdjson::dom::object> JsonObject(JsonElement value, const Place& place) {
  return Get<simdjson::dom::object>(value, place, "an object");
}

Status FindJsonMembers(JsonElement value, const Place& place,
                       std::span<const std::string_view> names,
                       std::span<std::optional<JsonElement>> members) {
  HDPS_ASSIGN_OR_RETURN(const simdjson::dom::object object, JsonObject(value, place));
  for (const simdjson::dom::key_value_pair member : object) {
    const auto found = std::ranges::find(names, member.key);
    const auto shown = [&] { return " has the member '" + EscapeUntrusted(member.key, 100) + "'"; };
    if (found == names.end()) {
      const std::vector<std::string> known(names.begin(), names.end());
      std::string all;
      for (const std::string& name : known) all += (all.empty() ? "" : ", ") + name;
      return Wrong(place, shown() + ": expected " + all + DidYouMean(member.key, known));
    }
    std::optional<JsonElement>& slot = members[static_cast<size_t>(found - names.begin())];
    if (slot) return Wrong(place, shown() + " twice: expected it once");
    if (!member.value.is_null()) slot = member.value;
  }
  return {};
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
      if (!type.is_bool()) return false;
      cells->AddNumber(uint64_t{value.get_bool().value_unsafe()});
      return true;
    default:
      return false;
  }
}

Status WrongCell(const InputCells& cells, uint64_t row, JsonElement value,
                 const std::string& wanted) {
  return WrongValue(InputPlace(cells.name()).Row(row), value,
                    wanted + ", or null where it is missing");
}

}  // namespace hdps
