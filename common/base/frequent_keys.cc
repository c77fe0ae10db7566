// A hash table of counts, with open addressing, that is thinned out when it is full.
#include "common/base/frequent_keys.h"

#include <algorithm>
#include <bit>

#include "common/base/hash.h"

namespace hdps {
namespace {

constexpr size_t kPrefetch = 16;
constexpr uint64_t kSalt = 0x5bd1e995a1c3f00du;  // Differs from the salt of the row tables.
constexpr size_t kKeysMin = 64;

size_t SlotsFor(size_t keys) { return std::bit_ceil(keys * 3 / 2); }

}  // namespace

FrequentKeys::FrequentKeys(size_t keys_max)
    : keys_max_(std::max(keys_max, kKeysMin)), slots_(SlotsFor(kKeysMin)) {}

size_t FrequentKeys::HomeOf(Key key) const { return MixBits(key ^ kSalt) & (slots_.size() - 1); }

void FrequentKeys::Add(std::span<const Key> keys) {
  size_t homes[kPrefetch];
  for (size_t begin = 0; begin < keys.size(); begin += kPrefetch) {
    const size_t count = std::min(kPrefetch, keys.size() - begin);
    if (slots_.size() < SlotsFor(std::min(keys_max_, size_ + count))) {
      Recount(2 * slots_.size(), [](uint64_t seen) { return seen; });
    }
    const size_t mask = slots_.size() - 1;
    for (size_t i = 0; i < count; ++i) {
      homes[i] = HomeOf(keys[begin + i]);
      __builtin_prefetch(&slots_[homes[i]]);
    }
    for (size_t i = 0; i < count; ++i) {
      const Key key = keys[begin + i];
      size_t at = homes[i];
      while (slots_[at].count != 0 && slots_[at].key != key) at = (at + 1) & mask;
      if (slots_[at].count == 0) {
        slots_[at].key = key;
        ++size_;
      }
      ++slots_[at].count;
      if (size_ >= keys_max_) MakeRoom();
    }
  }
}

template <typename NewCount>
void FrequentKeys::Recount(size_t slots, const NewCount& new_count) {
  const std::vector<Counted> all = All();
  slots_.assign(slots, Counted());
  size_ = 0;
  for (const Counted& counted : all) {
    const uint64_t count = new_count(counted.count);
    if (count == 0) continue;
    size_t at = HomeOf(counted.key);
    while (slots_[at].count != 0) at = (at + 1) & (slots_.size() - 1);
    slots_[at] = {counted.key, count};
    ++size_;
  }
}

void FrequentKeys::MakeRoom() {
  std::vector<uint64_t> counts;
  counts.reserve(size_);
  for (const Counted& counted : slots_) {
    if (counted.count != 0) counts.push_back(counted.count);
  }
  const auto middle = counts.begin() + static_cast<ptrdiff_t>(counts.size() / 2);
  std::nth_element(counts.begin(), middle, counts.end());
  const uint64_t median = *middle;
  error_ += median;
  Recount(slots_.size(), [median](uint64_t count) { return count > median ? count - median : 0; });
}

void FrequentKeys::Halve() {
  Recount(slots_.size(), [](uint64_t count) { return count / 2; });
  error_ = error_ / 2 + 1;
}

uint64_t FrequentKeys::CountOf(Key key) const {
  size_t at = HomeOf(key);
  while (slots_[at].count != 0 && slots_[at].key != key) at = (at + 1) & (slots_.size() - 1);
  return slots_[at].count;
}

std::vector<FrequentKeys::Counted> FrequentKeys::All() const {
  std::vector<Counted> all;
  all.reserve(size_);
  for (const Counted& counted : slots_) {
    if (counted.count != 0) all.push_back(counted);
  }
  return all;
}

}  // namespace hdps
