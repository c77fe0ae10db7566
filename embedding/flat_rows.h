// Holds the weights of rows for scoring, without their optimizer's state, while deltas change them.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "common/base/hash.h"
#include "common/base/ids.h"
#include "common/base/status.h"
#include "common/job/spec/table_spec.h"
#include "embedding/memory/page_memory.h"
#include "embedding/snapshot/row_taker.h"

namespace hdps {

// The arrays of FlatRows as they lie in memory or in a file. They hold no addresses.
struct FlatArrays {
  std::span<const std::byte> rows;    // [places, row bytes]: the key, then the weights.
  std::span<const uint32_t> slots;    // As FlatRows::Slot.
  std::shared_ptr<const void> keeps;  // Owns the memory; null: it outlives the rows.
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

  WeightFormat format() const { return format_; }
  uint32_t dim() const { return dim_; }
  uint64_t num_rows() const { return num_rows_; }
  uint64_t bytes() const;  // Memory of places ever used and of the index, whoever owns it.

  // ---- For readers.

  void PrefetchSlot(Key key) const { __builtin_prefetch(&now_.slots[now_.Home(Hash(key))]); }
  // Prefetches the row that the key probably has. Its slot should be near by then.
  void PrefetchRow(Key key) const;
  // Fills `row` [dim] and returns true, or returns false if the key has no row.
  bool Read(Key key, std::span<float> row) const;
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

  // Calls visit(keys, weights [keys, dim]) over all rows, by ascending place.
  using Visit = std::function<Status(std::span<const Key>, std::span<const float>)>;
  Status VisitRows(const Visit& visit) const;
  // Returns whether rows take the first places, and the index is as long as those of new rows.
  bool packed() const;
  // Returns the arrays, as Over() takes them or a copy of them. Requires: packed().
  FlatArrays arrays() const;

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

  static Index NewIndex(uint64_t rows);
  Index& writing() { return next_ ? *next_ : now_; }
  // Returns the position of the key's slot, or of the empty slot where it belongs.
  size_t Seek(const Index& index, Key key, uint64_t hash) const;
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

inline void FlatRows::PrefetchRow(Key key) const {
  const uint64_t hash = Hash(key);
  const Slot slot = Load(now_.slots[now_.Home(hash)]);
  if (!HasPlace(slot)) return;
  const std::byte* const row = RowAt(PlaceOf(slot));
  for (size_t at = 0; at < row_bytes_; at += 64) __builtin_prefetch(row + at);
  __builtin_prefetch(row + row_bytes_ - 1);
}

}  // namespace hdps
