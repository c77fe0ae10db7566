// A table a piece, then look-ups between the tables, then the numbers, then the places.
#include "kernels/keys/parallel_unique.h"

#include <algorithm>

namespace hdps {
namespace {

// A piece's distinct keys are looked up in all pieces before it.
constexpr size_t kPiecesMax = 8;
constexpr uint32_t kBlockKeys = 2048;
constexpr size_t kStretchKeys = size_t{1} << 15;

}  // namespace

void ParallelUnique::Find(VectorWidth width, std::span<const KeyColumn> columns,
                          Executor& executor) {
  Cut(columns, std::min<size_t>(static_cast<size_t>(executor.threads()), kPiecesMax));
  executor.ParallelFor(num_pieces_, [&](size_t p) {
    Piece& piece = pieces_[p];
    piece.table.Reset();
    for (const KeyColumn& column : piece.columns) {
      AddKeys(width, column.keys, column.index, &piece.table);
    }
  });
  CutBlocks();
  executor.ParallelFor(blocks_.size() - blocks_of_first_, [&](size_t b) {
    WithVectors(
        width, [&]() __attribute__((always_inline)) { FindNew(&blocks_[blocks_of_first_ + b]); });
  });
  CountNew();
  executor.ParallelFor(blocks_.size(), [&](size_t b) { NumberNew(blocks_[b]); });
  if (num_pieces_ > 2) {
    executor.ParallelFor(blocks_.size(), [&](size_t b) { NumberSeenBefore(blocks_[b]); });
  }
}

void ParallelUnique::Place(VectorWidth width, const uint32_t* places, Executor& executor) {
  CutStretches();
  executor.ParallelFor(stretches_.size(), [&](size_t s) {
    const Stretch& stretch = stretches_[s];
    const uint32_t* const number = pieces_[stretch.piece].number.data();
    WithVectors(
        width, [&]() __attribute__((always_inline)) {
          uint32_t* const index = stretch.index;
          if (stretch.piece == 0) {
            for (size_t i = 0; i < stretch.count; ++i) index[i] = places[index[i]];
          } else {
            for (size_t i = 0; i < stretch.count; ++i) index[i] = places[number[index[i]]];
          }
        });
  });
}

void ParallelUnique::Cut(std::span<const KeyColumn> columns, size_t pieces) {
  size_t keys = 0;
  for (const KeyColumn& column : columns) keys += column.keys.size();
  num_pieces_ = pieces;
  pieces_.resize(std::max(pieces_.size(), pieces));
  for (Piece& piece : pieces_) piece.columns.clear();
  size_t at = 0;  // In the list.
  for (const KeyColumn& column : columns) {
    for (size_t begin = 0; begin < column.keys.size();) {
      const size_t p = at * pieces / keys;
      const size_t piece_end = ((p + 1) * keys + pieces - 1) / pieces;
      const size_t count = std::min(piece_end - at, column.keys.size() - begin);
      pieces_[p].columns.push_back({column.keys.subspan(begin, count), column.index + begin});
      begin += count;
      at += count;
    }
  }
}

void ParallelUnique::CutBlocks() {
  blocks_.clear();
  for (uint32_t p = 0; p < num_pieces_; ++p) {
    Piece& piece = pieces_[p];
    const auto distinct = static_cast<uint32_t>(piece.table.unique().size());
    if (p == 1) blocks_of_first_ = blocks_.size();
    if (p > 0) {
      piece.number.resize(distinct);
      piece.new_ids.resize(distinct);
      if (p > 1) piece.seen_before.resize(distinct);
    }
    for (uint32_t begin = 0; begin < distinct; begin += kBlockKeys) {
      const uint32_t end = std::min(begin + kBlockKeys, distinct);
      blocks_.push_back({p, begin, end, p == 0 ? end - begin : 0, 0, 0});
    }
  }
}

HDPS_INLINE void ParallelUnique::FindNew(Block* block) {
  Piece& piece = pieces_[block->piece];
  const std::span<const Key> keys = piece.table.unique();
  uint32_t* const number = piece.number.data();
  uint32_t* const open = &piece.new_ids[block->begin];  // Those that no piece so far has.
  size_t num_open = block->end - block->begin, left = 0;
  for (uint32_t i = 0; i < num_open; ++i) open[i] = block->begin + i;
  // Without a branch, for half of them are found.
  pieces_[0].table.LookUp(
      {open, num_open}, keys, [&](uint32_t id, uint32_t found) __attribute__((always_inline)) {
        number[id] = found;
        open[left] = id;
        left += found == KeyTable::kNone ? 1 : 0;
      });
  num_open = left;
  for (uint32_t before = 1; before < block->piece; ++before) {
    SeenBefore* const seen = &piece.seen_before[block->begin];
    left = 0;
    pieces_[before].table.LookUp(
        {open, num_open}, keys, [&](uint32_t id, uint32_t found) __attribute__((always_inline)) {
          const bool none = found == KeyTable::kNone;
          if (!none) seen[block->num_seen_before++] = {id, before, found};
          open[left] = id;
          left += none ? 1 : 0;
        });
    num_open = left;
  }
  block->num_new = static_cast<uint32_t>(num_open);
}

void ParallelUnique::CountNew() {
  uint32_t next = 0;
  for (Block& block : blocks_) {
    block.first_number = next;
    next += block.num_new;
  }
  unique_.resize(next);
}

void ParallelUnique::NumberNew(const Block& block) {
  Piece& piece = pieces_[block.piece];
  const std::span<const Key> keys = piece.table.unique();
  if (block.piece == 0) {
    std::copy(keys.begin() + block.begin, keys.begin() + block.end, &unique_[block.first_number]);
    return;
  }
  for (uint32_t i = 0; i < block.num_new; ++i) {
    const uint32_t id = piece.new_ids[block.begin + i];
    piece.number[id] = block.first_number + i;
    unique_[block.first_number + i] = keys[id];
  }
}

void ParallelUnique::NumberSeenBefore(const Block& block) {
  for (uint32_t i = 0; i < block.num_seen_before; ++i) {
    const SeenBefore& seen = pieces_[block.piece].seen_before[block.begin + i];
    // There it was new, or it would have been found in a piece before that.
    pieces_[block.piece].number[seen.id] = pieces_[seen.piece].number[seen.id_there];
  }
}

void ParallelUnique::CutStretches() {
  stretches_.clear();
  for (uint32_t p = 0; p < num_pieces_; ++p) {
    for (const KeyColumn& column : pieces_[p].columns) {
      for (size_t begin = 0; begin < column.keys.size(); begin += kStretchKeys) {
        stretches_.push_back(
            {p, column.index + begin, std::min(kStretchKeys, column.keys.size() - begin)});
      }
    }
  }
}

}  // namespace hdps
