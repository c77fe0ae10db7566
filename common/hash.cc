// XXH3 behind two functions.
#include "common/hash.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace hdps {

uint64_t HashBytes(std::span<const std::byte> bytes, uint64_t seed) {
  return XXH3_64bits_withSeed(bytes.data(), bytes.size(), seed);
}

uint64_t HashString(std::string_view text, uint64_t seed) {
  return XXH3_64bits_withSeed(text.data(), text.size(), seed);
}

}  // namespace hdps
