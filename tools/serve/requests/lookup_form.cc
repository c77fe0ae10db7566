// Reads :lookup and :use, and writes errors.
#include <charconv>
#include <limits>
#include <utility>

#include "common/base/outside_text.h"
#include "common/protocol/manifest.h"
#include "tools/serve/requests/json_body.h"
#include "tools/serve/requests/json_text.h"
#include "tools/serve/requests/request_forms.h"
#include "tools/serve/requests/request_table.h"

namespace hdps {
namespace {

constexpr Place kRequest = {"the request"}, kKeys = {"keys"}, kValues = {"values"},
                kVersion = {"version"};

// Reads a whole number, or its decimal text: many programs have none beyond 2^53.
Result<uint64_t> ReadWhole(JsonElement value, const Place& place) {
  uint64_t number = 0;
  std::string_view text;
  if (value.get(number) == simdjson::SUCCESS) return number;
  if (value.get(text) == simdjson::SUCCESS && !text.empty()) {
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error == std::errc() && end == text.data() + text.size()) return number;
  }
  return Wrong(place, " is " + ShowJson(value) + ": expected a whole number from 0 to " +
                          std::to_string(std::numeric_limits<uint64_t>::max()));
}

Status ReadKeys(JsonElement keys, LookupRequest* request) {
  HDPS_ASSIGN_OR_RETURN(const simdjson::dom::array list, JsonList(keys, kKeys));
  HDPS_RETURN_IF_ERROR(CheckRows(kKeys, list.size()));
  if (list.size() == 0) return Wrong(kKeys, " is an empty list: expected at least one key");
  for (const JsonElement key : list) {
    const Place place = {.what = "keys", .index = static_cast<int64_t>(request->keys.size())};
    HDPS_ASSIGN_OR_RETURN(request->keys.emplace_back(), ReadWhole(key, place));
  }
  return {};
}

Status ReadValues(JsonElement values, LookupRequest* request) {
  HDPS_ASSIGN_OR_RETURN(const simdjson::dom::array list, JsonList(values, kValues));
  HDPS_RETURN_IF_ERROR(CheckRows(kValues, list.size()));
  RequestTable table({});
  const Datatype& texts = *FindDatatype("BYTES");
  HDPS_ASSIGN_OR_RETURN(InputCells* const cells,
                        table.Add(request->feature, texts.cells, texts.name));
  for (const JsonElement value : list) {
    if (!AddJsonCell(texts, value, cells)) {
      return WrongCell(*cells, cells->rows(), value, texts.Wanted());
    }
  }
  HDPS_ASSIGN_OR_RETURN(request->values, table.Finish());
  return {};
}

WrittenAnswer WriteLookup(const LookupAnswer& answer) {
  std::string json = R"({"model_version":")" + std::to_string(answer.step) + R"(","dim":)" +
                     std::to_string(answer.dim) + R"(,"rows":[)";
  for (size_t row = 0; row < answer.has_row.size(); ++row) {
    json += row > 0 ? ",[" : "[";
    for (uint32_t i = 0; i < answer.dim; ++i) {
      if (i > 0) json += ',';
      AppendJsonNumber(answer.rows[row * answer.dim + i], &json);
    }
    json += ']';
  }
  json += R"(],"has_row":[)";
  for (size_t row = 0; row < answer.has_row.size(); ++row) {
    if (row > 0) json += ',';
    json += answer.has_row[row] ? "true" : "false";
  }
  json += "]}";
  return {"application/json", std::move(json)};
}

}  // namespace

Result<AskedLookup> ReadLookup(std::string body) {
  HDPS_RETURN_IF_ERROR(CheckBytes(body.size()));
  HDPS_ASSIGN_OR_RETURN(const JsonBody json, JsonBody::Parse(&body, body.size()));
  HDPS_ASSIGN_OR_RETURN(const auto members,
                        JsonMembers(json.root(), kRequest, {"table", "keys", "feature", "values"}));
  const std::optional<JsonElement>&table = members[0], &keys = members[1], &feature = members[2],
        &values = members[3];
  if (!table) return Wrong(kRequest, " has no table: expected \"table\" with its name");
  if (keys.has_value() == values.has_value() || feature.has_value() != values.has_value()) {
    return Wrong(kRequest,
                 ": expected either \"keys\", or \"feature\" with \"values\", beside \"table\"");
  }
  LookupRequest request;
  HDPS_ASSIGN_OR_RETURN(request.table, JsonText(*table, {"table"}));
  if (keys) {
    HDPS_RETURN_IF_ERROR(ReadKeys(*keys, &request));
  } else {
    HDPS_ASSIGN_OR_RETURN(request.feature, JsonText(*feature, {"feature"}));
    if (request.feature.empty())
      return Wrong({"feature"}, " is \"\": expected the name of a feature");
    HDPS_RETURN_IF_ERROR(ReadValues(*values, &request));
  }
  return AskedLookup{std::move(request), WriteLookup};
}

Result<Clock> ReadUse(const std::string& body) {
  HDPS_RETURN_IF_ERROR(CheckBytes(body.size()));
  std::string padded = body;
  HDPS_ASSIGN_OR_RETURN(const JsonBody json, JsonBody::Parse(&padded, body.size()));
  HDPS_ASSIGN_OR_RETURN(const auto members, JsonMembers(json.root(), kRequest, {"version"}));
  const std::string wanted = R"(expected {"version": STEP} or {"version": "newest"})";
  if (!members[0]) return Wrong(kRequest, " has no version: " + wanted);
  std::string_view text;
  if (members[0]->get(text) == simdjson::SUCCESS && text == "newest") return kNoClock;
  const Result<uint64_t> step = ReadWhole(*members[0], kVersion);
  if (step.ok() && std::in_range<Clock>(*step)) return static_cast<Clock>(*step);
  return Wrong(kVersion, " is " + ShowJson(*members[0]) + ": " + wanted);
}

std::string ErrorBody(const std::string& message) {
  return R"({"error":)" + JsonQuoted(message) + "}";
}

}  // namespace hdps
