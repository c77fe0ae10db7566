// Finds rows by key: one flat array, probed line by line, that grows in place, piece by piece.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

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

// A hash table of four-slot cache lines. The upper bits of a key's hash, times the number of lines,
// give its home line, so an array of any length keeps the order of homes. It grows in place: the
// memory gets longer, and runs of keys move up from the last line on. Until it is done, a key
// whose home among the lines of before is below `unmoved_` is probed from that home, and any other
// one from its home among all lines.
//
// Invariant: the array is never full, so a probe ends; no slot is empty between the beginning of a
// key's home and its slot. So the used slots of a line come first, and no key passes a line whose
// last slot is empty.
//
// An index grows by a quarter before more than four fifths of its slots are used. Indexes that fill
// alike (the shards of a table) have lengths that differ by up to a quarter, given by `turn`, and
// so grow at different times: growing takes fresh memory, and a push that made all of them grow
// would take many times as long.
//
// The home uses other bits of the hash than the key's shard does (`salt` differs from ShardOf's),
// so the keys of one shard spread over the whole array.
class RowIndex {
 public:
  explicit RowIndex(uint64_t salt, uint32_t turn = 0);

  size_t size() const { return size_; }
  // Returns the memory of an index of `keys` keys, on average over turns.
  static size_t PredictBytes(size_t keys);
  // Returns what making room for `more` keys adds to bytes().
  size_t GrowthBytes(size_t more) const {
    return Fits(more) ? 0 : SizeFor(size_ + more, size_now_).bytes() - bytes();
  }
  size_t bytes() const { return size_now_.bytes(); }
  bool growing() const { return unmoved_ > 0; }
  // Returns whether `more` keys can be added without moving slots.
  bool HasRoom(size_t more) const { return !growing() && Fits(more); }

  // Makes room for `more` keys. While the index grows, each call also moves slots in proportion to
  // `more`. Slots move only here, in Erase and in Shrink.
  void Prepare(size_t more);

  // Returns memory not needed for the present keys and `more` others. Takes a pass over all slots.
  void Shrink(size_t more);

  // Returns the first slot of the key's home.
  RowSlot* Home(Key key) const {
    const uint64_t hash = HashOf(key, salt_);
    const size_t before = LineOf(hash, lines_before_);
    return begin_ + (before < unmoved_ ? before : LineOf(hash, lines())) * kLineSlots;
  }
  // Computes homes[k] = Home(keys[k]), in vectorized loops.
  HDPS_INLINE void Homes(std::span<const Key> keys, RowSlot** homes) const {
    const size_t n = keys.size();
    const Key* const from = keys.data();
    const uint64_t salt = salt_, all = lines(), some = lines_before_, unmoved = unmoved_;
    RowSlot* const begin = begin_;
    if (growing()) {
      for (size_t k = 0; k < n; ++k) {
        const uint64_t hash = HashOf(from[k], salt);
        const uint64_t now = LineOf(hash, all), before = LineOf(hash, some);
        homes[k] = begin + (before < unmoved ? before : now) * kLineSlots;
      }
      return;
    }
    for (size_t k = 0; k < n; ++k) {
      homes[k] = begin + LineOf(HashOf(from[k], salt), all) * kLineSlots;
    }
  }
  // Prefetches a home and the line behind it. Inlining is forced: a compiler sees no effect in a
  // function that only prefetches, and would drop its calls.
  HDPS_INLINE static void Prefetch(const RowSlot* home) {
    __builtin_prefetch(home);
    __builtin_prefetch(home + kLineSlots);
  }
  // Prefetches the lines behind a full home: one key in 9 is there, one in 130 is farther away.
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
    VisitLines(0, lines(), visit);
  }
  // Moves a clock's hand: visits the slots of the next `homes` homes (while the index grows, of
  // those of before) from the hand on, and wraps around at the end. The hand is a hash, so it stays
  // valid while the index changes: a key that stays for a whole round is visited about once.
  template <typename Visit>  // visit(RowSlot&); must not change key and row
  void Sweep(uint64_t* hand, size_t homes, const Visit& visit) const {
    for (; homes > 0; --homes) {
      const size_t home = LineOf(*hand, lines_before_);
      const bool last = home + 1 == lines_before_;
      const uint64_t next = last ? 0 : FirstHash(home + 1, lines_before_);
      if (home < unmoved_) {
        VisitLines(home, home + 1, visit);
      } else {
        // Keys whose homes have not moved may lie behind these.
        const bool first = home == unmoved_ && growing();
        const size_t begin = LineOf(FirstHash(home, lines_before_), lines());
        VisitLines(first ? home : begin, last ? lines() : LineOf(next, lines()), visit);
      }
      *hand = next;
    }
  }

 private:
  static constexpr size_t kLineSlots = 4;
  static constexpr size_t kLineBytes = kLineSlots * sizeof(RowSlot);

  // One of the lengths that an index goes through.
  struct Size {
    double exact;  // Lines before they are rounded up to pages.
    size_t lines;

    size_t bytes() const { return lines * kLineBytes; }
    bool Holds(size_t keys) const { return keys * 5 <= lines * kLineSlots * 4; }
  };
  static Size SizeOf(double exact);
  // Returns the first size from `from` on that holds `keys` keys.
  static Size SizeFor(size_t keys, Size from);
  // Returns the shortest length of the index with this turn.
  static double LinesMin(uint32_t turn);

  size_t lines() const { return size_now_.lines; }
  bool Fits(size_t more) const { return size_now_.Holds(size_ + more); }
  // Returns 32 bits of hash: the product with a number of lines has 64, which vectors compute.
  HDPS_INLINE static uint64_t HashOf(Key key, uint64_t salt) { return MixBits(key ^ salt) >> 32; }
  HDPS_INLINE static uint64_t LineOf(uint64_t hash, size_t lines) {
    return hash * static_cast<uint32_t>(lines) >> 32;
  }
  // Returns the smallest hash whose home is `line`.
  static uint64_t FirstHash(uint64_t line, uint64_t lines) {
    return ((line << 32) + lines - 1) / lines;
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
  RowSlot* NextLine(RowSlot* line) const { return Wrapped(line + kLineSlots); }
  RowSlot* Wrapped(RowSlot* slot) const { return slot == end_ ? begin_ : slot; }
  bool IsFull(size_t line) const { return begin_[(line + 1) * kLineSlots - 1].used(); }
  // Puts a key that is not there into the first empty slot from its home on.
  void Place(const RowSlot& slot);
  void SetLines(Size size);
  void StartGrowing(size_t more);
  // Moves the keys of at least `slots` slots, up to the beginning of a run.
  void Move(size_t slots);
  // Takes out all keys whose homes are among some lines before `end`, and those between them.
  // Returns the first of these lines; no key passes it.
  size_t TakeRun(size_t end);
  void PlaceRun();
  // Touches the pages to which the homes from `first` on move.
  void TouchAhead(size_t first);
  template <typename Visit>
  void VisitLines(size_t first, size_t end, const Visit& visit) const {
    RowSlot* const behind = begin_ + end * kLineSlots;
    for (RowSlot* slot = begin_ + first * kLineSlots; slot != behind; ++slot) {
      if (slot->used()) visit(*slot);
    }
  }

  const uint64_t salt_;
  const double lines_min_;
  PageMemory memory_;  // Address space for the array and what it may grow by.
  Size size_now_ = {};
  RowSlot* begin_ = nullptr;
  RowSlot* end_ = nullptr;
  // While not growing: as many lines as there are, none unmoved.
  size_t lines_before_ = 0, unmoved_ = 0;
  size_t touched_ = 0;  // While growing: pages from this byte on are touched.
  size_t size_ = 0;
  std::vector<RowSlot> run_;  // What TakeRun took; a member to reuse its memory.
};

}  // namespace hdps
