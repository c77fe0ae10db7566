// Numbers in JSON files: refuses a whole number that its type cannot hold, and writes non-finite
// numbers as null.
//
// nlohmann's own get() converts instead of refusing: -1 becomes 2^64-1, and 1e40 is undefined
// behavior.
#pragma once

#include <cmath>
#include <concepts>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <utility>

namespace hdps {

// Returns the value of the whole number `json`, an nlohmann::json. Throws std::out_of_range if it
// is not a whole number or `Number` cannot hold it.
template <std::integral Number, typename Json>
Number WholeOf(const Json& json) {
  const bool fits =
      json.is_number_unsigned()
          ? std::in_range<Number>(json.template get<uint64_t>())
          : json.is_number_integer() && std::in_range<Number>(json.template get<int64_t>());
  if (fits) return json.template get<Number>();
  throw std::out_of_range((json.is_number() ? json.dump() : std::string(json.type_name())) +
                          " where a whole number of another range is due");
}

// Returns the member `name` of the object `json`, or `absent` if it has none.
template <std::integral Number, typename Json>
Number WholeOr(const Json& json, const char* name, Number absent) {
  return json.contains(name) ? WholeOf<Number>(json.at(name)) : absent;
}

// Convert between doubles and JSON, which has no number for values that are not finite.
template <typename Json>
Json NumberJson(double value) {
  return std::isfinite(value) ? Json(value) : Json();
}
template <typename Json>
double NumberOf(const Json& json) {
  return json.is_null() ? std::nan("") : json.template get<double>();
}

}  // namespace hdps
