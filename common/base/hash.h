// Hash functions: from feature values to keys, from keys to shards, from bytes to checksums.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include "common/base/ids.h"

namespace hdps {

// Mixes 64 bits one-to-one so that every input bit affects all output bits (Stafford's mix 13 of
// the MurmurHash3 finalizer, as in SplitMix64).
inline uint64_t MixBits(uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

// Returns the XXH3 hash of `bytes`, the same on every machine of one byte order.
uint64_t HashBytes(std::span<const std::byte> bytes, uint64_t seed = 0);
uint64_t HashString(std::string_view text, uint64_t seed = 0);

// Computes HashBytes() with seed 0 over bytes that come in pieces. It does not matter where they
// are cut.
class HashStream {
 public:
  HashStream();
  ~HashStream();
  HashStream(const HashStream&) = delete;
  HashStream& operator=(const HashStream&) = delete;

  void Append(std::span<const std::byte> bytes);
  uint64_t Value() const;  // The hash of what was appended so far.

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// Returns the key of a feature value. The salt belongs to the feature's vocabulary, so equal values
// of two vocabularies have different keys.
inline Key FeatureKey(uint64_t feature_salt, std::string_view value) {
  return HashString(value, feature_salt);
}
inline Key CombineKeys(Key a, Key b) { return MixBits(a * 0x9e3779b97f4a7c15u ^ MixBits(b)); }

}  // namespace hdps
