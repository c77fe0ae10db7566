// Checks that numbers from outside are finite.
#pragma once

#include <cstddef>
#include <span>

namespace hdps {

// Returns the position of the first value that is infinite or NaN, or values.size().
size_t FirstNotFinite(std::span<const float> values);

}  // namespace hdps
