// XXH3 behind two functions and a stream.
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

struct HashStream::State {
  XXH3_state_t xxh;
};

HashStream::HashStream() : state_(std::make_unique<State>()) { XXH3_64bits_reset(&state_->xxh); }
HashStream::~HashStream() = default;

void HashStream::Append(std::span<const std::byte> bytes) {
  XXH3_64bits_update(&state_->xxh, bytes.data(), bytes.size());
}

uint64_t HashStream::Value() const { return XXH3_64bits_digest(&state_->xxh); }

}  // namespace hdps
