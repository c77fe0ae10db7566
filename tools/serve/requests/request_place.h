// Tells where a value stands in a request.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "common/base/status.h"

namespace hdps {

// A place that is put into words for an error alone. Texts outlive it.
struct Place {
  static constexpr int64_t kNone = -1;

  std::string_view what;       // "input"
  std::string_view name = {};  // From outside.
  int64_t index = kNone, row = kNone;
  std::string_view part = {};  // "the shape"

  Place Part(std::string_view of_it) const {
    Place place = *this;
    place.part = of_it;
    return place;
  }
  Place Row(uint64_t of_it) const {
    Place place = *this;
    place.row = static_cast<int64_t>(of_it);
    return place;
  }
  // "outputs[3]: the name", "input 'age', row 3"
  std::string Text() const;
};

inline Place InputPlace(std::string_view name) { return {.what = "input", .name = name}; }

// Returns kInvalidArgument with the place and what is wrong there.
Status Wrong(const Place& place, const std::string& what);

}  // namespace hdps
