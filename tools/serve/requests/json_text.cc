// Writes plain texts by itself, and others by nlohmann's printer.
#include "tools/serve/requests/json_text.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <iterator>
#include <nlohmann/json.hpp>

namespace hdps {

void AppendJsonNumber(float number, std::string* json) {
  if (!std::isfinite(number)) {
    *json += "null";
    return;
  }
  char text[32];
  const char* const end = std::to_chars(text, std::end(text), number).ptr;
  json->append(text, static_cast<size_t>(end - text));
}

void AppendJsonText(std::string_view text, std::string* json) {
  const auto is_plain = [](char c) { return c >= ' ' && c < 0x7f && c != '"' && c != '\\'; };
  if (std::ranges::all_of(text, is_plain)) {
    (*json += '"').append(text) += '"';
    return;
  }
  *json += nlohmann::json(std::string(text))
               .dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::string JsonQuoted(std::string_view text) {
  std::string json;
  AppendJsonText(text, &json);
  return json;
}

}  // namespace hdps
