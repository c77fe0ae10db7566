// Random numbers that depend only on their arguments, and random numbers of the system.
#pragma once

#include <cstdint>
#include <string>

#include "common/base/hash.h"
#include "common/base/ids.h"

namespace hdps {

// Returns number n of the stream `seed`. It has no state, so any part of the stream can be computed
// anywhere.
inline uint64_t RandomAt(uint64_t seed, uint64_t n) {
  return MixBits(MixBits(seed ^ 0x9e3779b97f4a7c15u) + 0x9e3779b97f4a7c15u * (n + 1));
}

// Uniform in [0, 1) with 24 bits, exact in a float.
inline float UnitFloat(uint64_t bits) { return static_cast<float>(bits >> 40) * 0x1.0p-24f; }
// Uniform in [0, 1) with 53 bits.
inline double UnitDouble(uint64_t bits) { return static_cast<double>(bits >> 11) * 0x1.0p-53; }

// A stream with a position, for shuffles and generators. The same seed gives the same numbers.
class Random {
 public:
  explicit Random(uint64_t seed) : seed_(seed) {}
  uint64_t Next() { return RandomAt(seed_, position_++); }
  uint64_t Below(uint64_t bound) {  // In [0, bound), bound > 0; bias below 2^-64 * bound.
    __extension__ using Wide = unsigned __int128;
    return static_cast<uint64_t>((static_cast<Wide>(Next()) * bound) >> 64);
  }
  double Unit() { return UnitDouble(Next()); }
  double Normal();  // Mean 0, variance 1 (Box and Muller, 1958).

 private:
  uint64_t seed_;
  uint64_t position_ = 0;
};

// Draws a number that no other process has, from the random numbers of the operating system.
PeerId NewPeerId();

// Draws 128 bits from the same source, as 32 hexadecimal digits.
std::string NewToken();

}  // namespace hdps
