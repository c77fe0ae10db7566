// A span of time in which a device copied or computed, by the host's clock.
#pragma once

#include <cstdint>

namespace hdps {

struct DeviceSpan {
  enum class Kind : uint8_t { kCopyUp, kCompute, kCopyDown };
  Kind kind = Kind::kCompute;
  int64_t begin_ns = 0, end_ns = 0;
};

}  // namespace hdps
