// Numbers in JSON files: a whole number that its type cannot hold is refused, and what is not
// finite is null.
//
// nlohmann's own get() converts instead of refusing: -1 becomes 2^64-1, and 1e40 is undefined
// behaviour.
#pragma once

#include <cmath>
#include <concepts>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <utility>

namespace hdps {

// The whole number that `json`, an nlohmann::json, is. Throws std::out_of_range where it is none,
// or one that `Number` cannot hold.
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

// The member `name` of the object `json`, or `absent` where it has none.
template <std::integral Number, typename Json>
Number WholeOr(const Json& json, const char* name, Number absent) {
  return json.contains(name) ? WholeOf<Number>(json.at(name)) : absent;
}

// JSON has no number for what is not finite.
template <typename Json>
Json NumberJson(double value) {
  return std::isfinite(value) ? Json(value) : Json();
}
template <typename Json>
double NumberOf(const Json& json) {
  return json.is_null() ? std::nan("") : json.template get<double>();
}

}  // namespace hdps
