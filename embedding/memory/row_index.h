// Finds rows by key: one flat array, probed line by line, that grows a piece at a time.
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

// Row numbers of one index are below this.
inline constexpr uint32_t kRowNumbersMax = (1u << 28) - 1;

// All zero: empty.
struct RowSlot {
  static constexpr uint32_t kUsesMax = 7;

  Key key = 0;
  uint32_t row_and_one : 28 = 0;  // Number of the row plus one.
  uint32_t uses : 3 = 0;          // Changes, as a clock's hand counts them down; at most kUsesMax.
  uint32_t dirty : 1 = 0;         // The row has changed since it was last copied to disk.
  uint32_t version = 0;           // The step that changed the row last.

  bool used() const { return row_and_one != 0; }
  uint32_t row() const { return row_and_one - 1; }
  // `count`: for a clock's hand and the disk behind. What nobody asks for is not written: a word of
  // the slot more costs a quarter of an update.
  HDPS_INLINE void OnChange(uint32_t step, bool count) {
    version = step;
    if (!count) return;
    dirty = 1;
    uses += uses < kUsesMax ? 1 : 0;
  }
};
static_assert(sizeof(RowSlot) == 16);

// Where the `turn`-th of things that happen alike has its place in [0, 1): any of them that follow
// each other are spread evenly (multiples of the golden ratio; Knuth, The Art of Computer
// Programming 3, section 6.4). 0 for the first.
constexpr double SpreadOfTurn(uint32_t turn) { return double(turn * 0x9e3779b9u) * 0x1p-32; }

// The home of a key is a cache line of four slots, given by the upper bits of its hash, so doubling
// the array keeps the order of homes. While it grows, the keys whose home in the old array lies
// among the first `moved_` (from `old_first_` on, around the end) are in the new array and all
// others in the old one: a look-up probes one of them.
//
// Invariant: each array is a power of two long and never full, so a probe ends; from the
// beginning of a key's home to its slot no slot is empty.
//
// It grows before it is fuller than two thirds; where there are many that fill alike, one by one
// from a half on, by their turns: to grow takes fresh memory, and all at once they would take a
// push as long as fifty.
//
// The home comes from other bits than the key's shard does (`salt` differs from ShardOf's), so the
// keys of one shard spread over the whole array.
class RowIndex {
 public:
  explicit RowIndex(uint64_t salt, uint32_t turn = 0);

  size_t size() const { return size_; }
  // What an index of `keys` keys takes once it has grown, on an average over turns.
  static size_t PredictBytes(size_t keys);
  // What making room for `more` keys will add to bytes() until the old array is gone.
  size_t GrowthBytes(size_t more) const {
    return Fits(more) ? 0 : SlotsFor(more) * sizeof(RowSlot);
  }
  size_t bytes() const { return now_.memory.size() + old_.memory.size() - released_bytes_; }
  bool growing() const { return !old_.memory.empty(); }
  // Whether `more` keys can be added without moving anything.
  bool HasRoom(size_t more) const { return !growing() && Fits(more); }

  // Makes room for `more` keys; while the array grows it also moves a piece of it, in proportion to
  // `more`. Slots move here and in Erase and nowhere else.
  void Prepare(size_t more);

  // Gives back what is not needed for `more` keys beside those that are there; takes a pass over
  // all.
  void Shrink(size_t more);

  // The first slot of the key's home.
  RowSlot* Home(Key key) const {
    const uint64_t hash = MixBits(key ^ salt_);
    const size_t old_home = old_.Home(hash);
    const bool moved = ((old_home - old_first_) & old_mask_) < moved_;
    return moved ? now_.begin + now_.Home(hash) : old_.begin + old_home;
  }
  // homes[k] = Home(keys[k]); a loop of vectors but while the index grows.
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
  // Of a home, and of the line behind it. Inlined by force: a function that only prefetches has no
  // effect that a compiler would know of, and its calls are dropped.
  HDPS_INLINE static void Prefetch(const RowSlot* home) {
    __builtin_prefetch(home);
    __builtin_prefetch(home + kLineSlots);
  }
  // Of the lines behind a home that is full: one key in 15 is there, one in 1000 is farther away.
  HDPS_INLINE static void PrefetchBehind(const RowSlot* home) {
    for (size_t line = 1; line <= 4; ++line) __builtin_prefetch(home + line * kLineSlots);
  }
  // As Find, but null where that is not among the slots of the home, or where the key is new.
  HDPS_INLINE static RowSlot* FindAtHome(Key key, RowSlot* home) {
    const uint32_t equal = EqualInLine(key, home);
    return equal != 0 ? home + std::countr_zero(equal) : nullptr;
  }
  // Where a key belongs that FindAtHome has not found; null when the home is full, and the key may
  // be behind it.
  HDPS_INLINE static RowSlot* EmptyAtHome(RowSlot* home) {
    const uint32_t empty = EmptyInLine(home);
    return empty != 0 ? home + std::countr_zero(empty) : nullptr;
  }
  // The slot of `key`, or the empty one where it belongs; `home` is its Home().
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

  template <typename Visit>  // visit(RowSlot&), in no order that means anything; keys stay
  void ForEach(const Visit& visit) const {
    for (const Array* array : {&now_, &old_}) {
      for (RowSlot* slot = array->begin; slot != array->end; ++slot) {
        if (slot->used()) visit(*slot);
      }
    }
  }
  // Visits the slots of the next `homes` homes of the old array (or of the only one) from the hand
  // on, and moves the hand; after the last comes the first. The hand stays good while the index
  // changes: who is there for a whole round is visited about once.
  template <typename Visit>  // visit(RowSlot&); must leave key and row
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
  // Of an array twice as long, or more, in which `more` keys fit.
  size_t SlotsFor(size_t more) const {
    size_t slots = now_.size() * 2;
    while (!FitsInto(slots, more)) slots *= 2;
    return slots;
  }
  // Four at once: which of them it is cannot be foretold. An empty slot has key 0, and before the
  // slot of key 0 none is empty, so the first that is equal is the right one.
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
  // Touches what slots of the old array before `moved` go to.
  void TouchAhead(size_t moved);
  template <typename Visit>
  static void VisitSlots(RowSlot* slot, size_t count, const Visit& visit) {
    for (; count > 0; --count, ++slot) {
      if (slot->used()) visit(*slot);
    }
  }

  const uint64_t salt_;
  const size_t fill_;  // Of 256 slots, how many may be used.
  Array now_, old_;
  // While not growing: 0, 0 and 1, which sends every home to now_.
  size_t old_first_ = 0, old_mask_ = 0, moved_ = 1;
  size_t released_ = 0;  // Of the moved slots, how many were looked at to be given back.
  size_t released_bytes_ = 0;
  size_t touched_ = 0;  // Of the slots to be moved: their places' pages are there.
  size_t size_ = 0;
};

}  // namespace hdps
