// An index from keys to the disk blocks that hold their rows, in four bytes a row.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "common/base/hash.h"
#include "common/base/ids.h"
#include "embedding/memory/page_memory.h"
#include "kernels/vector_width.h"

namespace hdps {

// Maps each key to the number of the disk block that holds its row. An entry ("pair") is one 32-bit
// word: the lower bits of the block's number, and as many bits of the key's hash as still fit (the
// "mark"). More bits of the hash follow from the segment and the bucket in which the word lies. The
// more blocks are in use, the fewer bits the mark has. In an index of a million pairs a lookup of
// an absent key names a block about once in some hundred times; the caller notices when it reads
// the block.
//
// The index grows one segment at a time (linear hashing): a segment of about a thousand pairs is
// split into two. Segments take memory in pieces of 512 bytes, so memory follows the number of
// pairs.
//
// Invariants: the keys of one block differ in their Alias. Has and Remove are then exact for a
// block and any of the keys that it was written with, whether the block still holds that key's row
// or not. The blocks in use lie in the range last given to WillHold.
class DiskIndex {
 public:
  static constexpr uint64_t kBlocksMax = uint64_t{1} << 22;
  static constexpr uint32_t kAliases = 1 << 15;

  explicit DiskIndex(uint64_t salt);

  uint32_t Alias(Key key) const { return static_cast<uint32_t>(HashOf(key)) & (kAliases - 1); }
  // Announces that the blocks in use are now in [first, end), at most kBlocksMax of them. Must be
  // called before a pair of a block outside the former range is added.
  void WillHold(uint64_t first, uint64_t end) {
    if (end - first > uint64_t{1} << block_bits_) WidenBlocks(first, end);
  }
  void Add(Key key, uint64_t block);
  // Returns whether the pair was there.
  bool Remove(Key key, uint64_t block);
  bool Has(Key key, uint64_t block) const { return Find(PlaceOf(key), block) != kNowhere; }
  // Calls visit(lower bits of a block's number) for every block that may hold the key; block_mask()
  // tells which bits these are.
  template <typename Visit>
  HDPS_INLINE void ForEachBlock(Key key, const Visit& visit) const {
    const Place place = PlaceOf(key);
    const Segment& segment = segments_[place.segment];
    for (uint32_t i = segment.begin(place.bucket); i < segment.end(place.bucket); ++i) {
      const uint32_t word = Word(segment, i);
      if (word >> block_bits_ == place.mark) visit(word & block_mask());
    }
  }
  uint32_t block_mask() const { return (uint32_t{1} << block_bits_) - 1; }
  HDPS_INLINE void Prefetch(Key key) const {
    const Place place = PlaceOf(key);
    const Segment& segment = segments_[place.segment];
    const uint32_t begin = segment.begin(place.bucket), end = segment.end(place.bucket);
    for (uint32_t i = begin; i < end; i += kLineWords) __builtin_prefetch(&Word(segment, i));
  }
  void Clear();

  size_t size() const { return size_; }
  // Memory of the index, rounded up to steps of a thirty-second, so that it seldom changes.
  size_t bytes() const { return bytes_; }
  // Estimates what `more` pairs would add to bytes().
  size_t GrowthBytes(size_t more) const;
  // Estimates bytes() of an index of `pairs` pairs.
  static size_t PredictBytes(size_t pairs);

 private:
  static constexpr uint32_t kBuckets = 32;
  static constexpr int kBucketBits = 5, kBlockBitsMin = 8;
  static constexpr uint32_t kPieceWords = 128, kLineWords = 16;
  static constexpr size_t kPieceBytes = kPieceWords * sizeof(uint32_t);
  static constexpr size_t kSlabBytes = 1 << 20;  // Address space of one slab.
  static constexpr size_t kSegmentPairs = 1024;  // Average number of pairs in a segment.
  static constexpr uint32_t kNowhere = ~uint32_t{0};

  // A part of the index: the words of its buckets, one bucket behind the other, each in no order.
  struct Segment {
    std::array<uint32_t, kBuckets> ends = {};  // End of each bucket.
    std::vector<uint32_t> pieces;              // Pieces that hold the words.
    uint32_t begin(uint32_t bucket) const { return bucket == 0 ? 0 : ends[bucket - 1]; }
    uint32_t end(uint32_t bucket) const { return ends[bucket]; }
    uint32_t size() const { return ends[kBuckets - 1]; }
  };
  // Where a key's pairs lie, from its hash: the lowest bits give the segment, the next the bucket,
  // the next the mark.
  struct Place {
    uint32_t segment, bucket, mark;
  };

  uint64_t HashOf(Key key) const { return MixBits(key ^ salt_); }
  // Number of hash bits that give the segment: one more if the segment was split in this round.
  int DepthOf(uint32_t segment) const {
    const auto first_half = static_cast<uint32_t>(segments_.size() - (size_t{1} << depth_));
    return depth_ + (segment < first_half || segment >= uint32_t{1} << depth_ ? 1 : 0);
  }
  HDPS_INLINE Place PlaceOf(Key key) const {
    const uint64_t hash = HashOf(key);
    auto segment = static_cast<uint32_t>(hash & ((uint64_t{2} << depth_) - 1));
    if (segment >= segments_.size()) segment -= uint32_t{1} << depth_;
    const int depth = DepthOf(segment);
    return {segment, static_cast<uint32_t>(hash >> depth) % kBuckets,
            static_cast<uint32_t>(hash >> (depth + kBucketBits)) & MarkMask(depth)};
  }
  uint32_t MarkMask(int depth) const {
    return (uint32_t{1} << (hash_bits_ - depth - kBucketBits)) - 1;
  }
  uint32_t& Word(const Segment& segment, uint32_t i) const {
    return Piece(segment.pieces[i / kPieceWords])[i % kPieceWords];
  }
  uint32_t* Piece(uint32_t piece) const {
    constexpr uint32_t kSlabPieces = kSlabBytes / kPieceBytes;
    return reinterpret_cast<uint32_t*>(slabs_[piece / kSlabPieces].data()) +
           size_t{piece % kSlabPieces} * kPieceWords;
  }
  // Returns the pair's position among the words of its segment, or kNowhere.
  uint32_t Find(const Place& place, uint64_t block) const;
  void Insert(Segment& segment, uint32_t bucket, uint32_t word);
  uint32_t NewPiece();
  void SplitNext();
  void WidenBlocks(uint64_t first, uint64_t end);
  static size_t TakenBytes(size_t pieces, size_t segments);
  static size_t StepBytes(size_t taken);

  const uint64_t salt_;
  // The next to be split is segments_[segments_.size() - 2^depth_].
  std::vector<Segment> segments_;
  int depth_ = 0;
  int hash_bits_ = 0;  // Bits of a key's hash that every pair still tells.
  int block_bits_ = 0;
  std::vector<PageMemory> slabs_;
  uint32_t pieces_ = 0;  // Pieces of the slabs that were ever used.
  std::vector<uint32_t> free_pieces_;
  size_t size_ = 0, bytes_ = 0;
};

}  // namespace hdps
