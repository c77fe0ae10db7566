// Implements the disk index: buckets that share their segment's memory, segments split one by one.
#include "embedding/disk/disk_index.h"

#include <glog/logging.h>

#include <algorithm>
#include <utility>

namespace hdps {
namespace {

constexpr int kWordBits = 32;
constexpr size_t kStepBytesMin = 4096;
constexpr size_t kStepParts = 32;

}  // namespace

DiskIndex::DiskIndex(uint64_t salt) : salt_(salt) { Clear(); }

void DiskIndex::Clear() {
  segments_.assign(1, {});
  depth_ = 0;
  block_bits_ = kBlockBitsMin;
  hash_bits_ = kWordBits - kBlockBitsMin + kBucketBits;
  slabs_.clear();
  pieces_ = 0;
  free_pieces_.clear();
  size_ = bytes_ = 0;
}

uint32_t DiskIndex::Find(const Place& place, uint64_t block) const {
  const uint32_t word = place.mark << block_bits_ | (static_cast<uint32_t>(block) & block_mask());
  const Segment& segment = segments_[place.segment];
  for (uint32_t i = segment.begin(place.bucket); i < segment.end(place.bucket); ++i) {
    if (Word(segment, i) == word) return i;
  }
  return kNowhere;
}

uint32_t DiskIndex::NewPiece() {
  if (!free_pieces_.empty()) {
    const uint32_t piece = free_pieces_.back();
    free_pieces_.pop_back();
    return piece;
  }
  if (pieces_ * kPieceBytes == slabs_.size() * kSlabBytes) slabs_.emplace_back(kSlabBytes);
  return pieces_++;
}

// Makes room behind a bucket by moving one word of each later bucket.
void DiskIndex::Insert(Segment& segment, uint32_t bucket, uint32_t word) {
  uint32_t hole = segment.size();
  if (hole == segment.pieces.size() * kPieceWords) segment.pieces.push_back(NewPiece());
  for (uint32_t b = kBuckets - 1; b > bucket; --b) {
    const uint32_t first = segment.begin(b);
    if (first != hole) Word(segment, hole) = Word(segment, first);
    hole = first;
    ++segment.ends[b];
  }
  Word(segment, hole) = word;
  ++segment.ends[bucket];
}

bool DiskIndex::Remove(Key key, uint64_t block) {
  const Place place = PlaceOf(key);
  uint32_t hole = Find(place, block);
  if (hole == kNowhere) return false;
  Segment& segment = segments_[place.segment];
  for (uint32_t b = place.bucket; b < kBuckets; ++b) {
    const uint32_t last = segment.end(b) - 1;
    if (last != hole) Word(segment, hole) = Word(segment, last);
    hole = last;
    --segment.ends[b];
  }
  // Keep one spare piece for the next pairs.
  if (segment.size() + 2 * kPieceWords == segment.pieces.size() * kPieceWords) {
    free_pieces_.push_back(segment.pieces.back());
    segment.pieces.pop_back();
  }
  --size_;
  return true;
}

void DiskIndex::Add(Key key, uint64_t block) {
  const Place place = PlaceOf(key);
  Insert(segments_[place.segment], place.bucket,
         place.mark << block_bits_ | (static_cast<uint32_t>(block) & block_mask()));
  // A mark without bits cannot tell to which half its pair belongs.
  const bool can_split = hash_bits_ > depth_ + kBucketBits;
  if (++size_ > segments_.size() * kSegmentPairs && can_split) SplitNext();
  const size_t taken = TakenBytes(pieces_, segments_.capacity());
  if (taken > bytes_) bytes_ = taken + StepBytes(taken);
}

// The lowest bit of a pair's bucket tells whether the pair moves; the lowest bit of its mark
// becomes the highest of its bucket.
void DiskIndex::SplitNext() {
  const size_t first_half = size_t{1} << depth_;
  const size_t from = segments_.size() - first_half;
  // push_back alone would double the vector.
  if (segments_.size() == segments_.capacity()) {
    segments_.reserve(segments_.size() + segments_.size() / kStepParts + 1);
  }
  segments_.emplace_back();
  Segment& old = segments_[from];
  std::vector<std::pair<uint32_t, uint32_t>> pairs;  // (bucket, word).
  pairs.reserve(old.size());
  for (uint32_t b = 0; b < kBuckets; ++b) {
    for (uint32_t i = old.begin(b); i < old.end(b); ++i) pairs.emplace_back(b, Word(old, i));
  }
  free_pieces_.insert(free_pieces_.end(), old.pieces.begin(), old.pieces.end());
  old = {};
  const uint32_t blocks = block_mask();
  for (const auto& [bucket, word] : pairs) {
    const uint32_t mark = word >> block_bits_;
    const uint32_t bucket_now = bucket >> 1 | (mark & 1) << (kBucketBits - 1);
    Insert(bucket % 2 == 0 ? old : segments_.back(), bucket_now,
           mark >> 1 << block_bits_ | (word & blocks));
  }
  if (segments_.size() == 2 * first_half) ++depth_;
}

// Works in place. A mark loses as many bits as the block number gains, unless splits had made it
// shorter.
void DiskIndex::WidenBlocks(uint64_t first, uint64_t end) {
  CHECK_LE(end - first, kBlocksMax);
  const int bits_before = block_bits_;
  const uint64_t mask_before = block_mask();
  while (end - first > uint64_t{1} << block_bits_) ++block_bits_;
  hash_bits_ = std::min(hash_bits_, kWordBits - block_bits_ + kBucketBits + depth_);
  for (uint32_t s = 0; s < segments_.size(); ++s) {
    const uint32_t marks = MarkMask(DepthOf(s));
    for (uint32_t i = 0; i < segments_[s].size(); ++i) {
      uint32_t& word = Word(segments_[s], i);
      const uint64_t number = first + ((word - first) & mask_before);
      word = (word >> bits_before & marks) << block_bits_ |
             (static_cast<uint32_t>(number) & block_mask());
    }
  }
}

size_t DiskIndex::TakenBytes(size_t pieces, size_t segments) {
  // The segment's piece numbers, and the heap's overhead.
  constexpr size_t kPieceNumbersBytes = 64;
  return pieces * kPieceBytes + segments * (sizeof(Segment) + kPieceNumbersBytes);
}

size_t DiskIndex::StepBytes(size_t taken) { return std::max(taken / kStepParts, kStepBytesMin); }

size_t DiskIndex::GrowthBytes(size_t more) const {
  // A split leaves two half-empty last pieces instead of one.
  const size_t pieces = more / (kPieceWords - kPieceWords / 8) + 1;
  const size_t free = std::min(pieces, free_pieces_.size());
  const size_t taken =
      TakenBytes(pieces_ + pieces - free, segments_.capacity() + more / kSegmentPairs);
  return taken <= bytes_ ? 0 : taken + StepBytes(taken) - bytes_;
}

size_t DiskIndex::PredictBytes(size_t pairs) {
  // The last piece of a segment is half full.
  const size_t segments = pairs / kSegmentPairs + 1;
  const size_t taken = TakenBytes(pairs / kPieceWords + segments / 2 + 1, segments);
  return taken + StepBytes(taken);
}

}  // namespace hdps
