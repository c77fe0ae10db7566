// Finds rows by key: one flat array, probed line by line, that grows piece by piece.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

#include "common/base/hash.h"
#include "common/base/ids.h"
#include "embedding/memory/page_memory.h"
#include "kernels/vector_width.h"

namespace hdps {

// Exclusive upper bound of the row numbers of one index.
inline constexpr uint32_t kRowNumbersMax = (1u << 28) - 1;

// The entry of one key. All zero: empty.
struct RowSlot {
  static constexpr uint32_t kUsesMax = 7;

  Key key = 0;
  uint32_t row_and_one : 28 = 0;  // Number of the row plus one.
  uint32_t uses : 3 = 0;   // Recent changes, counted down by the clock's hand; at most kUsesMax.
  uint32_t dirty : 1 = 0;  // The row has changed since it was last copied to disk.
  uint32_t version = 0;    // The step that changed the row last.

  bool used() const { return row_and_one != 0; }
  uint32_t row() const { return row_and_one - 1; }
  // Notes a change. `count`: also maintains `uses` and `dirty`, which serve eviction to disk.
  // Another word written here makes an update a quarter slower.
  HDPS_INLINE void OnChange(uint32_t step, bool count) {
    version = step;
    if (!count) return;
    dirty = 1;
    uses += uses < kUsesMax ? 1 : 0;
  }
};
static_assert(sizeof(RowSlot) == 16);

// Returns a point in [0, 1) for event number `turn`; 0 for the first. Consecutive events get evenly
// spread points (multiples of the golden ratio; Knuth, The Art of Computer Programming 3, section
// 6.4), so that, for instance, shards do not all grow at the same moment.
constexpr double SpreadPoint(uint32_t turn) { return double(turn * 0x9e3779b9u) * 0x1p-32; }

// A hash table of four-slot cache lines. The upper bits of a key's hash give its home line, so
// doubling the array keeps the order of homes. While the table grows, keys whose home in the old
// array is among the first `moved_` homes (from `old_first_` on, around the end) are in the new
// array and all others in the old one, so a lookup probes only one of them.
//
// Invariant: each array is a power of two long and never full, so a probe ends; no slot is empty
// between the beginning of a key's home and its slot.
//
// An index grows before it is more than two thirds full. Indexes that fill alike (the shards of a
// table) start at different points between one half and two thirds, given by `turn`: growing takes
// fresh memory, and a push that made all of them grow would take fifty times as long.
//
// The home uses other bits of the hash than the key's shard does (`salt` differs from ShardOf's),
// so the keys of one shard spread over the whole array.
class RowIndex {
 public:
  explicit RowIndex(uint64_t salt, uint32_t turn = 0);

  size_t size() const { return size_; }
  // Returns the memory of an index of `keys` keys once it has grown, on average over turns.
  static size_t PredictBytes(size_t keys);
  // Returns what making room for `more` keys adds to bytes() until the old array is gone.
  size_t GrowthBytes(size_t more) const {
    return Fits(more) ? 0 : SlotsFor(more) * sizeof(RowSlot);
  }
  size_t bytes() const { return now_.memory.size() + old_.memory.size() - released_bytes_; }
  bool growing() const { return !old_.memory.empty(); }
  // Returns whether `more` keys can be added without moving slots.
  bool HasRoom(size_t more) const { return !growing() && Fits(more); }

  // Makes room for `more` keys. While the index grows, each call also moves slots in proportion to
  // `more`. Slots move only here, in Erase and in Shrink.
  void Prepare(size_t more);

  // Returns memory not needed for the present keys and `more` others. Takes a pass over all slots.
  void Shrink(size_t more);

  // Returns the first slot of the key's home.
  RowSlot* Home(Key key) const {
    const uint64_t hash = MixBits(key ^ salt_);
    const size_t old_home = old_.Home(hash);
    const bool moved = ((old_home - old_first_) & old_mask_) < moved_;
    return moved ? now_.begin + now_.Home(hash) : old_.begin + old_home;
  }
  // Computes homes[k] = Home(keys[k]), in a vectorized loop unless the index is growing.
  HDPS_INLINE void Homes(std::span<const Key> keys, RowSlot** homes) const {
    const size_t n = keys.size();
    if (growing()) {
      for (size_t k = 0; k < n; ++k) homes[k] = Home(keys[k]);
      return;
    }
    const Key* const from = keys.data();
    const uint64_t salt = salt_;
    const int shift = now_.shift;
    RowSlot* const begin = now_.begin;
    for (size_t k = 0; k < n; ++k) {
      homes[k] = begin + (MixBits(from[k] ^ salt) >> shift) * kLineSlots;
    }
  }
  // Prefetches a home and the line behind it. Inlining is forced: a compiler sees no effect in a
  // function that only prefetches, and would drop its calls.
  HDPS_INLINE static void Prefetch(const RowSlot* home) {
    __builtin_prefetch(home);
    __builtin_prefetch(home + kLineSlots);
  }
  // Prefetches the lines behind a full home: one key in 15 is there, one in 1000 is farther away.
  HDPS_INLINE static void PrefetchBehind(const RowSlot* home) {
    for (size_t line = 1; line <= 4; ++line) __builtin_prefetch(home + line * kLineSlots);
  }
  // Like Find, but looks only at the home; returns null if the key is not there.
  HDPS_INLINE static RowSlot* FindAtHome(Key key, RowSlot* home) {
    const uint32_t equal = EqualInLine(key, home);
    return equal != 0 ? home + std::countr_zero(equal) : nullptr;
  }
  // Returns the slot for a key that FindAtHome did not find. Returns null if the home is full; the
  // key may then be behind it.
  HDPS_INLINE static RowSlot* EmptyAtHome(RowSlot* home) {
    const uint32_t empty = EmptyInLine(home);
    return empty != 0 ? home + std::countr_zero(empty) : nullptr;
  }
  // Returns the slot of `key`, or the empty slot where it belongs; `home` is its Home().
  RowSlot* Find(Key key, RowSlot* home) const {
    for (RowSlot* line = home;; line = NextLine(line)) {
      const uint32_t equal = EqualInLine(key, line);
      if (equal != 0) [[likely]]
        return line + std::countr_zero(equal);
      const uint32_t empty = EmptyInLine(line);
      if (empty != 0) return line + std::countr_zero(empty);
    }
  }
  // Fills the empty slot that Find returned. Requires: Prepare made room for it.
  void Fill(RowSlot* slot, const RowSlot& value) {
    *slot = value;
    ++size_;
  }
  // Empties a used slot; slots behind it may move.
  void Erase(RowSlot* slot);

  template <typename Visit>  // visit(RowSlot&), in no particular order; must not change keys
  void ForEach(const Visit& visit) const {
    for (const Array* array : {&now_, &old_}) {
      for (RowSlot* slot = array->begin; slot != array->end; ++slot) {
        if (slot->used()) visit(*slot);
      }
    }
  }
  // Moves a clock's hand: visits the slots of the next `homes` homes of the old array (or of the
  // only one) from the hand on, and wraps around at the end. The hand stays valid while the index
  // changes: a key that stays for a whole round is visited about once.
  template <typename Visit>  // visit(RowSlot&); must not change key and row
  void Sweep(uint64_t* hand, size_t homes, const Visit& visit) const {
    const Array& coarse = growing() ? old_ : now_;
    for (; homes > 0; --homes) {
      const size_t home = coarse.Home(*hand);
      const bool moved = ((home - old_first_) & old_mask_) < moved_;
      if (growing() && !moved) {
        VisitSlots(old_.begin + home, kLineSlots, visit);
      } else {
        const int finer = coarse.shift - now_.shift;
        VisitSlots(now_.begin + (home << finer), kLineSlots << finer, visit);
      }
      // Past the last home it is 0 again.
      *hand = (uint64_t{home / kLineSlots} + 1) << coarse.shift;
    }
  }

 private:
  static constexpr size_t kLineSlots = 4;

  struct Array {
    PageMemory memory;
    RowSlot* begin = nullptr;
    RowSlot* end = nullptr;
    int shift = 63;  // hash >> shift is the home's number.

    size_t size() const { return static_cast<size_t>(end - begin); }
    size_t Home(uint64_t hash) const { return (hash >> shift) * kLineSlots; }
  };
  static Array NewArray(size_t slots);

  bool FitsInto(size_t slots, size_t more) const { return (size_ + more) * 256 <= slots * fill_; }
  bool Fits(size_t more) const { return FitsInto(now_.size(), more); }
  // Returns the length of a new array, at least twice as long, in which `more` keys fit.
  size_t SlotsFor(size_t more) const {
    size_t slots = now_.size() * 2;
    while (!FitsInto(slots, more)) slots *= 2;
    return slots;
  }
  // Compares four keys at once, because a branch for each would be unpredictable. An empty slot has
  // key 0; no empty slot precedes the slot of key 0, so the first equal one is right.
  HDPS_INLINE static uint32_t EqualInLine(Key key, const RowSlot* line) {
    return Bit(line[0].key == key, 0) | Bit(line[1].key == key, 1) | Bit(line[2].key == key, 2) |
           Bit(line[3].key == key, 3);
  }
  HDPS_INLINE static uint32_t EmptyInLine(const RowSlot* line) {
    return Bit(!line[0].used(), 0) | Bit(!line[1].used(), 1) | Bit(!line[2].used(), 2) |
           Bit(!line[3].used(), 3);
  }
  static uint32_t Bit(bool set, int at) { return static_cast<uint32_t>(set) << at; }
  RowSlot* Next(RowSlot* slot) const { return Wrapped(slot + 1); }
  RowSlot* NextLine(RowSlot* line) const { return Wrapped(line + kLineSlots); }
  RowSlot* Wrapped(RowSlot* slot) const {
    if (slot == now_.end) return now_.begin;
    return slot == old_.end ? old_.begin : slot;
  }
  void StartGrowing(size_t more);
  // Moves at least `slots` slots of the old array, up to the end of a run of used ones.
  void Move(size_t slots);
  void MoveOneRun();
  void ReleaseMoved();
  // Touches the pages of the new array to which the slots before `moved` go.
  void TouchAhead(size_t moved);
  template <typename Visit>
  static void VisitSlots(RowSlot* slot, size_t count, const Visit& visit) {
    for (; count > 0; --count, ++slot) {
      if (slot->used()) visit(*slot);
    }
  }

  const uint64_t salt_;
  const size_t fill_;  // How many of 256 slots may be used.
  Array now_, old_;
  // While not growing: 0, 0 and 1, which sends every home to now_.
  size_t old_first_ = 0, old_mask_ = 0, moved_ = 1;
  size_t released_ = 0;  // Moved slots that ReleaseMoved has looked at.
  size_t released_bytes_ = 0;
  size_t touched_ = 0;  // Slots whose pages in the new array are touched.
  size_t size_ = 0;
};

}  // namespace hdps
