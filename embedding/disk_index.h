// Where on disk the row of a key is: its block, in four bytes a row.
#pragma once

#include <emmintrin.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "common/hash.h"
#include "common/ids.h"
#include "embedding/page_memory.h"
#include "kernels/vector_width.h"

namespace hdps {

// Pairs of a key and a block, by the lower bits of both: of a key 13 bits and its two lines in
// each of a few tables, so of absent keys one in thirty seems to be in some block.
// It grows by one more table, as long as all before, and moves nothing.
//
// Invariant: as long as the keys of one block differ in their Alias, pairs do not mix up: Has and
// Remove are exact for a key and a block that was made of such keys, whether it holds the key or
// not. At most kBlocksMax block numbers in a row may be in use.
class DiskIndex {
 public:
  static constexpr uint64_t kBlocksMax = uint64_t{1} << 19;
  static constexpr uint32_t kAliases = 1 << 15;

  explicit DiskIndex(uint64_t salt) : salt_(salt) {}

  uint32_t Alias(Key key) const {
    const Place place = PlaceOf(key);
    const uint32_t line = place.line < place.other ? place.line : place.other;
    return place.mark % (kAliases >> kFirstLineBits) << kFirstLineBits |
           line >> (32 - kFirstLineBits);
  }
  void Add(Key key, uint64_t block);
  // Whether the pair was there.
  bool Remove(Key key, uint64_t block);
  bool Has(Key key, uint64_t block) const;
  // Calls visit(lower bits of a block) for every block that may hold the key.
  template <typename Visit>
  HDPS_INLINE void ForEachBlock(Key key, const Visit& visit) const {
    const Place place = PlaceOf(key);
    for (const Table& table : tables_) {
      uint32_t* const lines[2] = {table.Line(place.line), table.Line(place.other)};
      for (int l = 0; l < (lines[0] == lines[1] ? 1 : 2); ++l) {
        for (uint32_t found = MarkedIn(lines[l], place.mark); found != 0; found &= found - 1) {
          visit(lines[l][__builtin_ctz(found)] & kBlockMask);
        }
      }
    }
  }
  HDPS_INLINE void Prefetch(Key key) const {
    const Place place = PlaceOf(key);
    for (const Table& table : tables_) {
      __builtin_prefetch(table.Line(place.line));
      __builtin_prefetch(table.Line(place.other));
    }
  }
  void Clear();

  size_t size() const { return size_; }
  size_t bytes() const { return bytes_; }
  // What `more` pairs may add to bytes().
  size_t GrowthBytes(size_t more) const {
    return (size_ + more) * 5 <= bytes_ ? 0 : std::max(bytes_, kLineBytes << kFirstLineBits);
  }

 private:
  static constexpr int kBlockBits = 19, kFirstLineBits = 5;
  static constexpr uint32_t kBlockMask = (1u << kBlockBits) - 1;
  static constexpr uint32_t kMarks = (1u << (32 - kBlockBits)) - 1;  // 1 to kMarks; 0: empty.
  static constexpr size_t kLineSlots = 16, kLineBytes = kLineSlots * sizeof(uint32_t);

  struct Place {
    uint32_t mark, line, other;  // Each line is the other's other.
  };
  Place PlaceOf(Key key) const {
    const uint64_t hash = MixBits(key ^ salt_);
    const auto mark = static_cast<uint32_t>((hash & 0xffffffffu) * kMarks >> 32) + 1;
    const auto line = static_cast<uint32_t>(hash >> 32);
    return {mark, line, line ^ mark * 0x9e3779b1u};
  }
  struct Table {
    PageMemory memory;
    int shift = 0;  // A line's number is the upper bits of Place::line.

    uint32_t* Line(uint32_t place) const {
      return reinterpret_cast<uint32_t*>(memory.data()) + size_t{place >> shift} * kLineSlots;
    }
  };
  // One bit for each slot that is `slot`, after both were shifted right.
  HDPS_INLINE static uint32_t EqualIn(const uint32_t* line, int shift, uint32_t slot) {
    // Every x86-64 has these vectors of four.
    const __m128i wanted = _mm_set1_epi32(static_cast<int>(slot >> shift));
    const auto equal = [&](size_t quarter) {
      const auto* four = reinterpret_cast<const __m128i*>(line) + quarter;
      return _mm_cmpeq_epi32(_mm_srl_epi32(_mm_load_si128(four), _mm_cvtsi32_si128(shift)), wanted);
    };
    const __m128i low = _mm_packs_epi32(equal(0), equal(1));
    const __m128i high = _mm_packs_epi32(equal(2), equal(3));
    return static_cast<uint32_t>(_mm_movemask_epi8(_mm_packs_epi16(low, high)));
  }
  // The same for slots with that mark; mark 0: the empty ones.
  HDPS_INLINE static uint32_t MarkedIn(const uint32_t* line, uint32_t mark) {
    return EqualIn(line, kBlockBits, mark << kBlockBits);
  }
  uint32_t* Find(Key key, uint64_t block) const;
  bool AddTo(const Table& table, const Place& place, uint32_t slot);
  void Grow();

  const uint64_t salt_;
  std::vector<Table> tables_;
  size_t size_ = 0, bytes_ = 0;
};

}  // namespace hdps
