// Which keys may be on disk: a few bits a key, so that a new key need not ask there.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "common/hash.h"
#include "common/ids.h"
#include "embedding/page_memory.h"
#include "kernels/vector_width.h"

namespace hdps {

// Bloom filters whose bits of one key lie in one cache line; each next one is twice as long, so it
// grows without knowing the keys it has.
//
// Invariant: MayHave is true of every key that was added since the last Clear; of others, of about
// one in fifty.
class KeyFilter {
 public:
  explicit KeyFilter(uint64_t salt) : salt_(salt) {}

  HDPS_INLINE bool MayHave(Key key) const {
    const uint64_t hash = MixBits(key ^ salt_);
    for (const Layer& layer : layers_) {
      if (layer.Has(hash)) return true;
    }
    return false;
  }
  HDPS_INLINE void Prefetch(Key key) const {
    const uint64_t hash = MixBits(key ^ salt_);
    for (const Layer& layer : layers_) __builtin_prefetch(layer.Line(hash));
  }
  void Add(Key key);
  void Clear();
  // Keys added that it did not seem to have.
  size_t size() const { return size_; }
  size_t bytes() const { return bytes_; }

 private:
  static constexpr size_t kLineBytes = 64, kLineWords = kLineBytes / sizeof(uint64_t);
  static constexpr int kBitsSet = 6, kBitIndexBits = 9;  // 512 bits a line.

  struct Layer {
    PageMemory memory;
    size_t lines = 0, keys = 0, keys_max = 0;

    uint64_t* Line(uint64_t hash) const {
      // The upper half says which line, the lower one which bits.
      return reinterpret_cast<uint64_t*>(memory.data()) + ((hash >> 32) * lines >> 32) * kLineWords;
    }
    bool Has(uint64_t hash) const {
      const uint64_t* line = Line(hash);
      uint64_t bits = Bits(hash), missing = 0;
      for (int i = 0; i < kBitsSet; ++i, bits >>= kBitIndexBits) {
        missing |= ~line[bits / 64 % kLineWords] >> (bits % 64) & 1;
      }
      return missing == 0;
    }
    void Set(uint64_t hash) {
      uint64_t* line = Line(hash);
      uint64_t bits = Bits(hash);
      for (int i = 0; i < kBitsSet; ++i, bits >>= kBitIndexBits) {
        line[bits / 64 % kLineWords] |= uint64_t{1} << (bits % 64);
      }
    }
    static uint64_t Bits(uint64_t hash) { return hash * 0x9e3779b97f4a7c15u ^ hash >> 29; }
  };

  const uint64_t salt_;
  std::vector<Layer> layers_;  // The last one takes new keys.
  size_t size_ = 0, bytes_ = 0;
};

}  // namespace hdps
