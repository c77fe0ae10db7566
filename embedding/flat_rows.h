// Holds the weights of rows for scoring, without their optimizer's state, while deltas change them.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "common/base/hash.h"
#include "common/base/ids.h"
#include "common/base/status.h"
#include "common/job/spec/table_spec.h"
#include "embedding/memory/page_memory.h"
#include "embedding/snapshot/row_taker.h"
#include "kernels/vector_width.h"

namespace hdps {

// The arrays of FlatRows as they lie in memory or in a file. They hold no addresses.
struct FlatArrays {
  std::span<const std::byte> rows;    // [places, row bytes]: the key, then the weights.
  std::span<const uint32_t> slots;    // As FlatRows::Slot.
  std::shared_ptr<const void> keeps;  // Owns the memory; null: it outlives the rows.
  // Gives memory back that slots were brought to while they are copied; null: it stays.
  std::function<void()> drop = nullptr;
};

// The rows of one table in one shard: keys and weights, in the weights' format.
//
// A row lies at a place and never moves. The index is an array of slots of 4 bytes, probed one by
// one from a home that the key's hash gives. A slot has a row's place and 4 bits of its key's hash,
// so that few other rows are looked at. A change is made in two parts. Staged rows are written into
// free places, which no slot has; Publish() then stores their places into the slots. Places that
// fell free are used by the next change.
//
// Invariant: what readers see changes only in Publish(). One thread stages and publishes; any
// number of threads read meanwhile, except during Publish().
class FlatRows : public RowTaker {
 public:
  // Exclusive upper bound of the number of places.
  static constexpr uint32_t kPlacesMax = (1u << 28) - 1;

  FlatRows(WeightFormat format, uint32_t dim);
  // Takes rows that lie in memory of somebody else, which is only read, and copies the slots.
  // kCorruption if the arrays are none of such rows.
  static Result<std::unique_ptr<FlatRows>> Over(WeightFormat format, uint32_t dim,
                                                FlatArrays arrays);
  FlatRows(const FlatRows&) = delete;
  FlatRows& operator=(const FlatRows&) = delete;

  // Returns the bytes of a row: its key and weights.
  static size_t RowBytes(WeightFormat format, uint32_t dim);
  // Returns the memory of `rows` rows with their index, once they are loaded.
  static uint64_t PredictBytes(WeightFormat format, uint32_t dim, uint64_t rows);

  // Returns the length of the index of `rows` rows that one Begin() announced.
  static uint64_t SlotsFor(uint64_t rows);
  // Gives the row of a key at `place` its slot. Requires: no slot has the key, and two are empty.
  static void AddSlot(std::span<uint32_t> slots, Key key, uint32_t place);
  // The error of more rows than kPlacesMax.
  static Status TooMany(uint64_t rows);

  WeightFormat format() const { return format_; }
  uint32_t dim() const { return dim_; }
  uint64_t num_rows() const { return num_rows_; }
  uint64_t bytes() const;  // Memory of places ever used and of the index, whoever owns it.

  // ---- For readers.

  // Calls use(i, row of keys[i] in *of[i], or null if it has none) for every key in order. `of` has
  // the rows in which each key is sought, those of one table in the key's shard. Slots of many keys
  // are asked of the memory together, then their rows, so that no key waits for its own.
  template <typename Use>
  static void ForEachFound(std::span<const FlatRows* const> of, std::span<const Key> keys,
                           const Use& use);
  // Copies the weights of a found row into `weights`, [dim].
  void ReadWeightsOf(const std::byte* row, std::span<float> weights) const;
  // Returns the place of a key's row, which no other row has, or nothing if it has none.
  std::optional<uint32_t> Find(Key key) const;

  // ---- For the one writer. Stage rows, then publish or discard them.

  // Makes room in the index for rows to stage.
  Status Begin(uint64_t rows) override;
  // Stages rows, of which the first `dim` floats are the weights. Requires: no key was staged
  // before since the last Publish() or Discard(), except for removal. Begin() announced the rows.
  Status Store(std::span<const Key> keys, std::span<const float> rows) override;
  void Erase(std::span<const Key> keys) override;  // Stages removals.
  // Makes everything staged visible. Takes some nanoseconds a key; Settle() must follow, which
  // frees memory and may run beside readers.
  void Publish();
  void Settle() { retired_ = {}; }
  void Discard();  // Forgets what is staged.

  // Finds the staged rows by their keys.
  class Staged {
   public:
    // Stays right until the next change, and for the one writer alone. Requires: `rows` outlives
    // it.
    explicit Staged(const FlatRows& rows);
    // Returns the row that the key has once everything is published; null if it has none.
    const std::byte* Find(Key key) const;

   private:
    const FlatRows& rows_;
    std::vector<std::pair<Key, uint32_t>> changes_;  // By key: as Slot.
  };

  // Calls visit(keys, weights [keys, dim]) over all rows, by ascending place.
  using Visit = std::function<Status(std::span<const Key>, std::span<const float>)>;
  Status VisitRows(const Visit& visit) const;

 private:
  // 0: empty, ends a probe. kNoRow: passed over; its row was removed, or is staged. Else the lower
  // 28 bits are the place plus one, and the upper 4 of the hash.
  using Slot = uint32_t;
  static constexpr int kTagShift = 28;
  static constexpr Slot kNoRow = 1u << kTagShift;
  static constexpr Slot kPlaceMask = kNoRow - 1;
  static bool HasPlace(Slot slot) { return (slot & kPlaceMask) != 0; }
  static uint32_t PlaceOf(Slot slot) { return (slot & kPlaceMask) - 1; }
  static Slot SlotOf(uint64_t hash, uint32_t place) { return Tag(hash) | (place + 1); }
  static Slot Tag(uint64_t hash) { return static_cast<Slot>(hash) << kTagShift; }
  static uint64_t Hash(Key key) { return MixBits(key ^ 0x666c6174726f7773u); }

  struct Index {
    std::span<Slot> slots = {};
    uint64_t filled = 0;  // Slots that are not empty.
    PageMemory memory = {};
    size_t Home(uint64_t hash) const {
      return static_cast<size_t>((static_cast<__uint128_t>(hash) * slots.size()) >> 64);
    }
    size_t Next(size_t at) const { return at + 1 == slots.size() ? 0 : at + 1; }
  };
  struct Change {
    size_t at;  // In the slots of writing().
    Slot slot;
  };
  // Readers may look at a slot while the writer marks it as taken by a staged row.
  static Slot Load(const Slot& slot) { return __atomic_load_n(&slot, __ATOMIC_RELAXED); }
  static void Save(Slot* slot, Slot value) { __atomic_store_n(slot, value, __ATOMIC_RELAXED); }

  // kBatchKeys: keys whose slots are looked at before their rows are. kSlotsAhead: how many keys
  // before their use slots are prefetched.
  static constexpr size_t kBatchKeys = 512, kSlotsAhead = 64, kLineBytes = 64;
  // Returns how many keys before their use rows are prefetched: about as many lines as a core can
  // have in flight, whatever the length of a row.
  static constexpr size_t RowsAhead(size_t row_bytes) {
    constexpr size_t kLinesAhead = 128;
    return std::clamp<size_t>(kLinesAhead / (row_bytes / kLineBytes + 2), 8, 64);
  }

  static Index NewIndex(uint64_t rows);
  Index& writing() { return next_ ? *next_ : now_; }
  // Returns the position of the key's slot, or of the empty slot where it belongs.
  size_t Seek(const Index& index, Key key, uint64_t hash) const {
    return SeekFrom(index, key, hash, index.Home(hash));
  }
  // The same for a key that is not in the slots from its home up to `at`.
  size_t SeekFrom(const Index& index, Key key, uint64_t hash, size_t at) const;
  // Returns the first slot from `at` on that is empty or probably the key's: a row of another key
  // with the same tag is there once in 15 times. Looks at no row.
  size_t SeekAlike(uint64_t hash, size_t at) const;
  // Returns the row of the key, which may be that at `at`; null if there is none.
  const std::byte* FoundRow(Key key, size_t at, const std::byte* row) const;
  HDPS_INLINE void Prefetch(const std::byte* row) const {
    for (size_t at = 0; at < row_bytes_; at += kLineBytes) __builtin_prefetch(row + at);
    __builtin_prefetch(row + row_bytes_ - 1);  // A row ends in one line more, unless aligned.
  }
  const std::byte* RowAt(uint32_t place) const {
    return place < base_places_ ? base_ + place * row_bytes_ : RowInSlab(place);
  }
  std::byte* RowInSlab(uint32_t place) const;
  // Notes that no slot has a place any more. Those of somebody else's memory stay as they are.
  void Free(uint32_t place) {
    if (keeps_base_ || place >= base_places_) free_.push_back(place);
  }
  Key KeyAt(uint32_t place) const;
  // Returns a place that no slot has.
  Result<uint32_t> TakePlace();
  void Grow(uint64_t more);
  void ReserveFree();

  const WeightFormat format_;
  const uint32_t dim_;
  const size_t row_bytes_;
  uint64_t num_rows_ = 0;

  // The first places lie in one range, made for the rows that the first Begin() announced, or
  // given. Places behind it lie in slabs, each twice as long as the one before.
  static constexpr uint32_t kFirstSlabPlaces = 1024;
  const std::byte* base_ = nullptr;
  uint64_t base_places_ = 0;
  PageMemory base_memory_;
  bool keeps_base_ = true;  // The base is base_memory_, and not somebody else's.
  std::shared_ptr<const void> keeps_;
  std::array<PageMemory, 19> slabs_;
  uint64_t base_used_ = 0;      // Places of the base that were ever used.
  uint32_t past_base_ = 0;      // The same behind it.
  std::vector<uint32_t> free_;  // Places that were used and have no row.

  Index now_;
  std::optional<Index> next_;  // Replaces now_ when it is published: staged rows do not fit now_.
  Index retired_;
  std::vector<Change> staged_;
};

inline std::byte* FlatRows::RowInSlab(uint32_t place) const {
  const auto past = static_cast<uint32_t>(place - base_places_);
  const int slab = std::bit_width(past / kFirstSlabPlaces + 1) - 1;
  const uint32_t begin = ((1u << slab) - 1) * kFirstSlabPlaces;
  return slabs_[static_cast<size_t>(slab)].data() + (past - begin) * row_bytes_;
}

inline size_t FlatRows::SeekAlike(uint64_t hash, size_t at) const {
  for (const Slot tag = Tag(hash);; at = now_.Next(at)) {
    const Slot slot = Load(now_.slots[at]);
    if (slot == 0 || (HasPlace(slot) && (slot & ~kPlaceMask) == tag)) return at;
  }
}

inline const std::byte* FlatRows::FoundRow(Key key, size_t at, const std::byte* row) const {
  if (row == nullptr) return nullptr;
  Key found;
  std::memcpy(&found, row, sizeof(found));
  if (found == key) [[likely]]
    return row;
  const Slot slot = Load(now_.slots[SeekFrom(now_, key, Hash(key), now_.Next(at))]);
  return HasPlace(slot) ? RowAt(PlaceOf(slot)) : nullptr;
}

template <typename Use>
void FlatRows::ForEachFound(std::span<const FlatRows* const> of, std::span<const Key> keys,
                            const Use& use) {
  if (keys.empty()) return;
  const size_t rows_ahead = RowsAhead(of.front()->row_bytes_);
  uint64_t hashes[kBatchKeys];
  size_t slots[kBatchKeys];
  const std::byte* rows[kBatchKeys];
  for (size_t begin = 0; begin < keys.size(); begin += kBatchKeys) {
    const size_t n = std::min(kBatchKeys, keys.size() - begin);
    for (size_t k = 0; k < n; ++k) {
      const Index& index = of[begin + k]->now_;
      hashes[k] = Hash(keys[begin + k]);
      slots[k] = index.Home(hashes[k]);
      if (k < kSlotsAhead) __builtin_prefetch(&index.slots[slots[k]]);
    }
    for (size_t k = 0; k < n; ++k) {
      if (const size_t ahead = k + kSlotsAhead; ahead < n) {
        __builtin_prefetch(&of[begin + ahead]->now_.slots[slots[ahead]]);
      }
      const FlatRows& table = *of[begin + k];
      slots[k] = table.SeekAlike(hashes[k], slots[k]);
      const Slot slot = Load(table.now_.slots[slots[k]]);
      rows[k] = HasPlace(slot) ? table.RowAt(PlaceOf(slot)) : nullptr;
      if (k < rows_ahead && rows[k] != nullptr) table.Prefetch(rows[k]);
    }
    for (size_t k = 0; k < n; ++k) {
      if (const size_t ahead = k + rows_ahead; ahead < n && rows[ahead] != nullptr) {
        of[begin + ahead]->Prefetch(rows[ahead]);
      }
      use(begin + k, of[begin + k]->FoundRow(keys[begin + k], slots[k], rows[k]));
    }
  }
}

}  // namespace hdps
