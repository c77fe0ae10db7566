// Finds slots by key, and chooses the keys that get a slot.
#include "worker/cache/hot_keys.h"

#include <glog/logging.h>

#include <algorithm>
#include <bit>
#include <limits>
#include <utility>

#include "common/base/hash.h"
#include "kernels/host/row_slab.h"

namespace hdps {
namespace {

constexpr size_t kPrefetch = 16;
constexpr uint64_t kSalt = 0x9d7c31f2e4b86a05u;

// Raises the count of a key that is cached already: another key must be clearly more frequent to
// replace it.
uint64_t Defended(uint64_t count) { return count + count / 4 + 1; }

}  // namespace

HotKeys::HotKeys(std::vector<Key> keys)
    : keys_(std::move(keys)), index_(std::bit_ceil(2 * keys_.size() + 1)) {
  CHECK_LT(keys_.size(), size_t{std::numeric_limits<uint32_t>::max()} / 4);
  const size_t mask = index_.size() - 1;
  for (uint32_t slot = 0; slot < keys_.size(); ++slot) {
    size_t at = MixBits(keys_[slot] ^ kSalt) & mask;
    while (index_[at] != 0) at = (at + 1) & mask;
    index_[at] = slot + 1;
  }
}

void HotKeys::Find(std::span<const Key> keys, uint32_t* slots) const {
  const size_t mask = index_.size() - 1;
  size_t homes[kPrefetch];
  for (size_t begin = 0; begin < keys.size(); begin += kPrefetch) {
    const size_t count = std::min(kPrefetch, keys.size() - begin);
    for (size_t i = 0; i < count; ++i) {
      homes[i] = MixBits(keys[begin + i] ^ kSalt) & mask;
      __builtin_prefetch(&index_[homes[i]]);
    }
    for (size_t i = 0; i < count; ++i) {
      const Key key = keys[begin + i];
      size_t at = homes[i];
      while (index_[at] != 0 && keys_[index_[at] - 1] != key) at = (at + 1) & mask;
      slots[begin + i] = index_[at] == 0 ? kNotInSlab : index_[at] - 1;
    }
  }
}

std::vector<SlotChange> ChooseChanges(const HotKeys& now,
                                      std::vector<FrequentKeys::Counted> counted, size_t rows_max) {
  struct Candidate {
    uint64_t worth = 0;
    uint64_t order = 0;  // Breaks ties between equal counts independently of the keys' order.
    Key key = 0;
    uint32_t slot = kNotInSlab;
  };
  std::vector<Key> keys;
  for (const FrequentKeys::Counted& c : counted) keys.push_back(c.key);
  std::vector<uint32_t> slots(keys.size());
  now.Find(keys, slots.data());
  std::vector<Candidate> candidates;
  std::vector<uint64_t> worth_of_slot(now.size(), 0);
  for (size_t i = 0; i < keys.size(); ++i) {
    const bool hot = slots[i] != kNotInSlab;
    const uint64_t worth = hot ? Defended(counted[i].count) : counted[i].count;
    if (hot) worth_of_slot[slots[i]] = worth;
    candidates.push_back({worth, MixBits(keys[i] ^ kSalt), keys[i], slots[i]});
  }
  const size_t chosen = std::min(rows_max, candidates.size());
  const auto more = [](const Candidate& a, const Candidate& b) {
    return std::pair(a.worth, a.order) > std::pair(b.worth, b.order);
  };
  std::partial_sort(candidates.begin(), candidates.begin() + static_cast<ptrdiff_t>(chosen),
                    candidates.end(), more);
  std::vector<bool> stays(now.size(), false);
  std::vector<SlotChange> changes;
  for (size_t i = 0; i < chosen; ++i) {
    if (candidates[i].slot != kNotInSlab) {
      stays[candidates[i].slot] = true;
    } else {
      changes.push_back({0, candidates[i].key});
    }
  }
  std::vector<uint32_t> leaving;  // Slots that lose their key, least frequent first.
  for (uint32_t s = 0; s < now.size(); ++s) {
    if (!stays[s]) leaving.push_back(s);
  }
  std::sort(leaving.begin(), leaving.end(), [&](uint32_t a, uint32_t b) {
    return std::pair(worth_of_slot[a], a) < std::pair(worth_of_slot[b], b);
  });
  uint32_t next_free = now.size();
  size_t next_leaving = 0;
  for (SlotChange& change : changes) {
    change.slot = next_free < rows_max ? next_free++ : leaving.at(next_leaving++);
  }
  return changes;
}

HotKeys Changed(const HotKeys& now, std::span<const SlotChange> changes) {
  std::vector<Key> keys = now.keys();
  for (const SlotChange& change : changes) {
    CHECK_LE(change.slot, keys.size()) << "free slots are filled in order";
    if (change.slot == keys.size()) keys.push_back(0);
    keys[change.slot] = change.key;
  }
  return HotKeys(std::move(keys));
}

}  // namespace hdps
