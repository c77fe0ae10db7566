// An open table of positions with prefetching: probing waits for memory once per kAhead keys.
#include "kernels/unique_keys.h"

#include <glog/logging.h>

#include <algorithm>
#include <bit>
#include <limits>

#include "common/hash.h"

namespace hdps {
namespace {

constexpr size_t kAhead = 16;

}  // namespace

void UniqueKeys::Reset(size_t keys_max) {
  CHECK_LT(keys_max, size_t{std::numeric_limits<uint32_t>::max()} / 2);
  const size_t slots = std::bit_ceil(std::max<size_t>(keys_max * 2, 64));
  mask_ = slots - 1;
  if (slots_.size() < slots) slots_.resize(slots);
  std::fill_n(slots_.begin(), slots, 0u);
  if (unique_.size() < keys_max) unique_.resize(keys_max);
  num_unique_ = 0;
}

uint32_t UniqueKeys::FindOrAdd(Key key, size_t home) {
  for (size_t slot = home;; slot = (slot + 1) & mask_) {
    const uint32_t entry = slots_[slot];
    if (entry == 0) {
      unique_[num_unique_] = key;
      slots_[slot] = static_cast<uint32_t>(++num_unique_);
      return static_cast<uint32_t>(num_unique_ - 1);
    }
    if (unique_[entry - 1] == key) return entry - 1;
  }
}

void UniqueKeys::Add(std::span<const Key> keys, uint32_t* index) {
  CHECK_LE(num_unique_ + keys.size(), unique_.size());
  size_t homes[kAhead];
  for (size_t begin = 0; begin < keys.size(); begin += kAhead) {
    const size_t count = std::min(kAhead, keys.size() - begin);
    for (size_t i = 0; i < count; ++i) {
      homes[i] = MixBits(keys[begin + i]) & mask_;
      __builtin_prefetch(&slots_[homes[i]]);
    }
    for (size_t i = 0; i < count; ++i) index[begin + i] = FindOrAdd(keys[begin + i], homes[i]);
  }
}

}  // namespace hdps
