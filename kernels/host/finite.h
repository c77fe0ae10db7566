// Whether numbers from outside are numbers.
#pragma once

#include <cstddef>
#include <span>

namespace hdps {

// The position of the first value that is infinite or not a number, or values.size().
size_t FirstNotFinite(std::span<const float> values);

}  // namespace hdps
