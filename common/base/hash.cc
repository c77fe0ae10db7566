// XXH3 behind two functions and a stream.
#include "common/base/hash.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#if defined(__x86_64__)
// XXH3 of the library, which picks the widest vector instructions of this processor at run time. It
// is declared here because its own header conflicts with the inlined functions above.
extern "C" uint64_t XXH3_64bits_withSeed_dispatch(const void* input, size_t size, uint64_t seed);
extern "C" int XXH3_64bits_update_dispatch(XXH3_state_t* state, const void* input, size_t size);
#else
#define XXH3_64bits_withSeed_dispatch XXH3_64bits_withSeed
#define XXH3_64bits_update_dispatch XXH3_64bits_update
#endif

namespace hdps {

namespace {
// Shorter inputs are hashed inline, which is faster than the call.
constexpr size_t kInlineBytesMax = 512;
}  // namespace

uint64_t HashBytes(std::span<const std::byte> bytes, uint64_t seed) {
  if (bytes.size() <= kInlineBytesMax) {
    return XXH3_64bits_withSeed(bytes.data(), bytes.size(), seed);
  }
  return XXH3_64bits_withSeed_dispatch(bytes.data(), bytes.size(), seed);
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
  XXH3_64bits_update_dispatch(&state_->xxh, bytes.data(), bytes.size());
}

uint64_t HashStream::Value() const { return XXH3_64bits_digest(&state_->xxh); }

}  // namespace hdps
