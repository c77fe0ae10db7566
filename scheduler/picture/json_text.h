// Numbers and texts of the panels, for whichever type holds the JSON.
#pragma once

#include <cmath>
#include <string>

#include "common/base/outside_text.h"

namespace hdps {

// Returns null for a number that is not finite, because JSON has none.
template <typename Json>
Json NumberOrNull(double value) {
  return std::isfinite(value) ? Json(value) : Json();
}

// Returns the text on one line. What members said is safe for terminals and logs.
template <typename Json>
std::string JsonText(const Json& json) {
  return EscapeJson(json.dump(-1, ' ', false, Json::error_handler_t::replace));
}

}  // namespace hdps
