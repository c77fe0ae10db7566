// The memory tier of a table's slice: rows of one length in slabs, found by key in batches.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "common/base/ids.h"
#include "embedding/memory/page_memory.h"
#include "embedding/memory/row_index.h"
#include "kernels/vector_width.h"

namespace hdps {

inline constexpr uint32_t kRowVersionMax = std::numeric_limits<uint32_t>::max();
// Converts a step to a row's version; steps past the largest version count as the largest.
inline uint32_t RowVersion(int64_t step) {
  return static_cast<uint32_t>(std::clamp<int64_t>(step, 0, kRowVersionMax));
}

inline constexpr int64_t kSinceEver = -1;  // Before all steps: every row has changed since.
// Returns whether a step after `since` changed the row of this version. Every row with the largest
// version counts as changed.
inline bool ChangedAfter(int64_t since, uint32_t version) {
  return since < 0 || version > RowVersion(since) || version == kRowVersionMax;
}

// Stores the bytes of each row, and its key, number and version beside them. The table gives the
// bytes their meaning.
//
// Invariant: a row never moves while its key is there, except in Compact. Row numbers are dense
// from 0 on, and numbers of erased rows are reused first. There are at most kRowNumbersMax rows: a
// caller that makes rows checks HasNumbersFor before. Used by one task at a time.
class RowStore {
 public:
  // Memory is taken `piece_bytes` at a time, a power of two from 4 KiB to kHugePageBytes.
  // `counts_changes`: slots maintain uses and dirty; otherwise both stay as they were when the row
  // was made. `turn`: number of this store among stores that fill alike (a table's shards); they
  // take their pieces at different times, so that no push waits for fresh memory for all of them.
  RowStore(size_t row_bytes, uint64_t salt, size_t piece_bytes = kHugePageBytes,
           bool counts_changes = true, uint32_t turn = 0);

  size_t num_rows() const { return index_.size(); }
  // Is true while the index grows; every call that may make rows then moves slots, also those of
  // existing keys.
  bool growing() const { return index_.growing(); }
  // Returns whether `rows` more rows can be made, out of at most `rows_max`.
  bool HasNumbersFor(size_t rows, size_t rows_max = kRowNumbersMax) const {
    return made_ + rows <= rows_max + free_.size();
  }
  size_t row_bytes() const { return row_bytes_; }
  // Memory in use: index, pages of rows ever used, free numbers.
  size_t bytes() const;

  std::byte* Row(uint32_t row) const {
    return slabs_[row >> slab_shift_].data() + (row & slab_mask_) * stride_;
  }
  // Returns null if the key has no row.
  const RowSlot* Find(Key key) const {
    const RowSlot* slot = index_.Find(key, index_.Home(key));
    return slot->used() ? slot : nullptr;
  }
  void PrefetchSlot(Key key) const { RowIndex::Prefetch(index_.Home(key)); }
  // Calls use(i, slot of keys[i] or null, its row or null) for every key in order, after
  // prefetching the first `line_bytes` of the row.
  template <typename Use>
  HDPS_INLINE void ForEachFound(std::span<const Key> keys, size_t line_bytes, const Use& use) const;
  // Calls use(i, row) for every key in order and sets each row's version. Rows of new keys are
  // first filled by make(their keys, pointers to their rows), up to kBatchKeys in a call.
  template <typename Make, typename Use>
  HDPS_INLINE void ForEachMade(std::span<const Key> keys, uint32_t version, const Make& make,
                               const Use& use);

  // The look-up alone, for callers that pass over the rows of a batch several times: keys of which
  // the slots are found before the rows are used, so that each of the two loops is short.
  static constexpr size_t kBatchKeys = 512;
  // Sets rows[k] to the row of keys[k], or to null if there is none, for up to kBatchKeys keys.
  // Prefetches `bytes` of the first rows, from byte `begin` on.
  HDPS_INLINE void FindBatchRows(std::span<const Key> keys, size_t begin, size_t bytes,
                                 const std::byte** rows) const;
  // The same, but makes missing rows and sets each row's version, as ForEachMade does.
  template <typename Make>
  HDPS_INLINE void MakeBatchRows(std::span<const Key> keys, uint32_t version, const Make& make,
                                 std::byte** rows);
  // Number of rows to prefetch ahead: about as many lines as a core can have in flight, whatever
  // the length of a row.
  static constexpr size_t RowsAhead(size_t bytes) {
    constexpr size_t kLinesAhead = 128;
    return std::clamp<size_t>(kLinesAhead / (bytes / kLineBytes + 1), 16, 64);
  }
  // Prefetches a row's first `line_bytes`; kBytes: 0, or `line_bytes` if known at compile time.
  template <size_t kBytes>
  HDPS_INLINE static void Prefetch(const std::byte* row, size_t line_bytes) {
    const size_t bytes = kBytes > 0 ? kBytes : line_bytes;
    // An unaligned row ends in one line more; its last float lies in it.
    const size_t last = std::max(bytes, sizeof(float)) - sizeof(float);
    const size_t end = std::min(last, kPrefetchLinesMax * kLineBytes);
#pragma GCC unroll 16
    for (size_t at = 0; at < end; at += kLineBytes) __builtin_prefetch(row + at);
    __builtin_prefetch(row + last);
  }

  // Makes a row for a key that comes back from disk: unchanged, with that version, and counted as
  // used a few times. The caller fills its bytes.
  std::byte* Insert(Key key, uint32_t version);
  // Returns whether the key had a row. The row's number becomes free.
  bool Erase(Key key);

  // Estimates the memory of a store of `rows` rows, on average over turns.
  static size_t PredictBytes(size_t row_bytes, size_t rows);
  // Returns what a call for `keys` keys that makes `rows` new rows may add to bytes().
  size_t BytesToAdd(size_t rows, size_t keys) const;
  // Moves rows into the places of erased ones until `spare_rows` free places are left, and returns
  // the memory behind them.
  void Compact(size_t spare_rows);

  // visit(RowSlot&), in no particular order; must not change keys and rows
  template <typename Visit>
  void ForEach(const Visit& visit) const {
    index_.ForEach(visit);
  }
  // Moves a clock's hand over the rows: see RowIndex::Sweep. A hand starts at 0.
  template <typename Visit>  // visit(RowSlot&); must not change keys and rows
  void Sweep(uint64_t* hand, size_t homes, const Visit& visit) const {
    index_.Sweep(hand, homes, visit);
  }
  // Finds the `count` smallest keys from `first` on whose rows changed after `since`, in ascending
  // order; fewer if there are no more.
  void SmallestKeys(Key first, size_t count, std::vector<Key>* keys,
                    int64_t since = kSinceEver) const;
  // Returns how many rows changed after `since`.
  size_t CountChanged(int64_t since) const;

 private:
  static constexpr size_t kSlotsAhead = 64;  // How many keys ahead slots are prefetched.
  static constexpr size_t kLineBytes = 64, kPrefetchLinesMax = 16;

  // Finds the slots of up to kBatchKeys keys. Calls resolve(k, slot) first for keys found or
  // missing at their home, then for keys whose home is full of others, each group in order.
  template <typename Resolve>
  HDPS_INLINE void FindBatch(std::span<const Key> keys, RowSlot** slots,
                             const Resolve& resolve) const;
  uint32_t NewRow();
  // Slabs follow each other end to end: row n has the bytes [n, n + 1) * stride_.
  size_t slab_bytes() const { return (slab_mask_ + 1) * stride_; }
  // Returns up to which byte memory should be taken when rows end at `end`.
  size_t Wanted(size_t end) const;
  // Returns the end of the piece that holds the byte before `wanted`.
  size_t PieceEnd(size_t wanted) const;
  void AskUpTo(size_t end);

  const size_t row_bytes_;
  const size_t stride_;
  const int slab_shift_;
  const size_t slab_mask_;
  const size_t piece_bytes_;
  const size_t ahead_bytes_;  // How early the next piece is taken; less than a piece.
  const bool counts_changes_;
  RowIndex index_;
  std::vector<PageMemory> slabs_;
  uint32_t made_ = 0;       // Rows below this number were given out at some time.
  size_t asked_bytes_ = 0;  // Memory taken so far, from the first slab on.
  std::vector<uint32_t> free_;
};

template <typename Resolve>
HDPS_INLINE void RowStore::FindBatch(std::span<const Key> keys, RowSlot** slots,
                                     const Resolve& resolve) const {
  const size_t n = keys.size();
  uint32_t away[kBatchKeys];
  size_t num_away = 0;
  index_.Homes(keys, slots);
  for (size_t k = 0; k < std::min(n, kSlotsAhead); ++k) __builtin_prefetch(slots[k]);
  for (size_t k = 0; k < n; ++k) {
    if (k + kSlotsAhead < n) __builtin_prefetch(slots[k + kSlotsAhead]);
    if (RowSlot* const slot = RowIndex::FindAtHome(keys[k], slots[k]); slot != nullptr) [[likely]] {
      slots[k] = slot;
      resolve(k, slot);
    } else if (RowSlot* const empty = RowIndex::EmptyAtHome(slots[k]); empty != nullptr) {
      slots[k] = empty;
      resolve(k, empty);
    } else {
      RowIndex::PrefetchBehind(slots[k]);
      away[num_away++] = static_cast<uint32_t>(k);
    }
  }
  for (size_t i = 0; i < num_away; ++i) {
    const size_t k = away[i];
    slots[k] = index_.Find(keys[k], slots[k]);
    resolve(k, slots[k]);
  }
}

template <typename Use>
HDPS_INLINE void RowStore::ForEachFound(std::span<const Key> keys, size_t line_bytes,
                                        const Use& use) const {
  const size_t rows_ahead = RowsAhead(line_bytes);
  RowSlot* slots[kBatchKeys];
  const std::byte* rows[kBatchKeys];
  for (size_t begin = 0; begin < keys.size(); begin += kBatchKeys) {
    const size_t n = std::min(kBatchKeys, keys.size() - begin);
    FindBatch(
        keys.subspan(begin, n),
        slots, [&](size_t k, const RowSlot* slot) __attribute__((always_inline)) {
          rows[k] = slot->used() ? Row(slot->row()) : nullptr;
          if (k < rows_ahead && rows[k] != nullptr) Prefetch<0>(rows[k], line_bytes);
        });
    for (size_t k = 0; k < n; ++k) {
      if (k + rows_ahead < n && rows[k + rows_ahead] != nullptr) {
        Prefetch<0>(rows[k + rows_ahead], line_bytes);
      }
      use(begin + k, rows[k] != nullptr ? slots[k] : nullptr, rows[k]);
    }
  }
}

HDPS_INLINE void RowStore::FindBatchRows(std::span<const Key> keys, size_t begin, size_t bytes,
                                         const std::byte** rows) const {
  const size_t rows_ahead = RowsAhead(bytes);
  RowSlot* slots[kBatchKeys];
  FindBatch(
      keys, slots, [&](size_t k, const RowSlot* slot) __attribute__((always_inline)) {
        rows[k] = slot->used() ? Row(slot->row()) : nullptr;
        if (k < rows_ahead && rows[k] != nullptr) Prefetch<0>(rows[k] + begin, bytes);
      });
}

template <typename Make>
HDPS_INLINE void RowStore::MakeBatchRows(std::span<const Key> keys, uint32_t version,
                                         const Make& make, std::byte** rows) {
  const size_t rows_ahead = RowsAhead(row_bytes_);
  RowSlot* slots[kBatchKeys];
  Key new_keys[kBatchKeys];
  std::byte* new_rows[kBatchKeys];
  const bool count = counts_changes_;
  if (!index_.HasRoom(keys.size())) index_.Prepare(keys.size());
  size_t num_new = 0;
  FindBatch(
      keys, slots, [&](size_t k, RowSlot * slot) __attribute__((always_inline)) {
        if (slot->used()) [[likely]] {
          slot->OnChange(version, count);
          rows[k] = Row(slot->row());
        } else {
          const uint32_t number = NewRow();
          index_.Fill(slot, {keys[k], number + 1, 1, 1, version});
          rows[k] = Row(number);
          new_keys[num_new] = keys[k];
          new_rows[num_new++] = rows[k];
        }
        if (k < rows_ahead) Prefetch<0>(rows[k], row_bytes_);
      });
  if (num_new > 0) make(std::span<const Key>(new_keys, num_new), &new_rows[0]);
}

template <typename Make, typename Use>
HDPS_INLINE void RowStore::ForEachMade(std::span<const Key> keys, uint32_t version,
                                       const Make& make, const Use& use) {
  const size_t rows_ahead = RowsAhead(row_bytes_);
  std::byte* rows[kBatchKeys];
  for (size_t begin = 0; begin < keys.size(); begin += kBatchKeys) {
    const size_t n = std::min(kBatchKeys, keys.size() - begin);
    MakeBatchRows(keys.subspan(begin, n), version, make, rows);
    for (size_t k = 0; k < n; ++k) {
      if (k + rows_ahead < n) Prefetch<0>(rows[k + rows_ahead], row_bytes_);
      use(begin + k, rows[k]);
    }
  }
}

}  // namespace hdps
