// Numbers of 64 bits as text: checksums and digests, of which many JSON readers keep only 53 bits.
#pragma once

#include <cstdint>
#include <string>

namespace hdps {

// Returns the 16 hexadecimal digits of `value`.
inline std::string HexDigits(uint64_t value) {
  std::string text(16, '0');
  for (auto digit = text.rbegin(); value != 0; ++digit, value >>= 4) {
    *digit = "0123456789abcdef"[value & 15];
  }
  return text;
}

}  // namespace hdps
