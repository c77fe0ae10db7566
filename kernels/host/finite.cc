// Checks a block at a time, as fast as memory delivers it.
#include "kernels/host/finite.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>

#include "kernels/vector_width.h"

namespace hdps {
namespace {

HDPS_INLINE bool AllFinite(const float* values, size_t count) {
  constexpr uint32_t kExponent = 0x7f800000;  // All ones: infinite or not a number.
  uint32_t any = 0;
  for (size_t i = 0; i < count; ++i) {
    any |= static_cast<uint32_t>((std::bit_cast<uint32_t>(values[i]) & kExponent) == kExponent);
  }
  return any == 0;
}

}  // namespace

size_t FirstNotFinite(std::span<const float> values) {
  constexpr size_t kBlock = 4096;
  const VectorWidth width = WidestVectors();
  for (size_t begin = 0; begin < values.size(); begin += kBlock) {
    const auto block = values.subspan(begin, std::min(kBlock, values.size() - begin));
    const bool finite = WithVectors(
        width, [&]() __attribute__((always_inline)) {
          return AllFinite(block.data(), block.size());
        });
    if (finite) continue;
    const auto bad =
        std::find_if(block.begin(), block.end(), [](float v) { return !std::isfinite(v); });
    return begin + static_cast<size_t>(bad - block.begin());
  }
  return values.size();
}

}  // namespace hdps
