// A table a piece, then look-ups between the tables, then the numbers.
#include "kernels/key_pieces.h"

#include <algorithm>
#include <functional>

namespace hdps {
namespace {

// A piece's distinct keys are looked up in all pieces before it.
constexpr size_t kPiecesMax = 8;
constexpr uint32_t kBlockKeys = 4096;

HDPS_INLINE void RenameAll(const uint32_t* number, std::span<const KeyColumn> columns) {
  for (const KeyColumn& column : columns) {
    uint32_t* const index = column.index;
    for (size_t i = 0; i < column.keys.size(); ++i) index[i] = number[index[i]];
  }
}
}  // namespace

void KeyPieces::Find(VectorWidth width, std::span<const KeyColumn> columns, Executor& executor) {
  Cut(columns, std::min<size_t>(static_cast<size_t>(executor.threads()), kPiecesMax));
  executor.ParallelFor(num_pieces_, [&](size_t p) {
    Piece& piece = pieces_[p];
    piece.table.Reset();
    for (const KeyColumn& column : piece.columns) {
      AddKeys(width, column.keys, column.index, &piece.table);
    }
  });
  CutBlocks();
  executor.ParallelFor(blocks_.size(), [&](size_t b) { FindOwners(&blocks_[b]); });
  NumberNew();
  executor.ParallelFor(blocks_.size(), [&](size_t b) { NumberBlock(blocks_[b]); });
  // The first piece has its numbers already.
  executor.ParallelFor(num_pieces_ - 1, [&](size_t p) {
    const Piece& piece = pieces_[p + 1];
    WithVectors(
        width, [&]() __attribute__((always_inline)) {
          RenameAll(piece.number.data(), piece.columns);
        });
  });
}

void KeyPieces::Cut(std::span<const KeyColumn> columns, size_t pieces) {
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

void KeyPieces::CutBlocks() {
  blocks_.clear();
  for (uint32_t p = 0; p < num_pieces_; ++p) {
    Piece& piece = pieces_[p];
    const auto distinct = static_cast<uint32_t>(piece.table.unique().size());
    piece.owner.resize(distinct);
    piece.rank.resize(distinct);
    piece.new_ids.resize(distinct);
    piece.number.resize(distinct);
    piece.first_block = blocks_.size();
    for (uint32_t begin = 0; begin < distinct; begin += kBlockKeys) {
      blocks_.push_back({p, begin, std::min(begin + kBlockKeys, distinct), 0, 0});
    }
  }
}

void KeyPieces::FindOwners(Block* block) {
  Piece& piece = pieces_[block->piece];
  const std::span<const Key> keys = piece.table.unique();
  // Those that no piece so far has.
  uint32_t open[kBlockKeys];
  size_t num_open = 0;
  for (uint32_t id = block->begin; id < block->end; ++id) {
    piece.owner[id] = {block->piece, id};
    open[num_open++] = id;
  }
  for (uint32_t before = 0; before < block->piece; ++before) {
    size_t left = 0;
    pieces_[before].table.LookUp({open, num_open}, keys, [&](uint32_t id, uint32_t found) {
      // Without a branch, for half of them are found.
      const bool none = found == KeyTable::kNone;
      const Owner own = piece.owner[id];
      piece.owner[id] = {none ? own.piece : before, none ? own.id : found};
      open[left] = id;
      left += none ? 1 : 0;
    });
    num_open = left;
  }
  for (size_t i = 0; i < num_open; ++i) {
    piece.rank[open[i]] = static_cast<uint32_t>(i);
    piece.new_ids[block->begin + i] = open[i];
  }
  block->num_new = static_cast<uint32_t>(num_open);
}

void KeyPieces::NumberNew() {
  uint32_t next = 0;
  for (Block& block : blocks_) {
    block.first_number = next;
    next += block.num_new;
  }
  unique_.resize(next);
}

void KeyPieces::NumberBlock(const Block& block) {
  Piece& piece = pieces_[block.piece];
  const std::span<const Key> keys = piece.table.unique();
  for (uint32_t id = block.begin; id < block.end; ++id) {
    const Owner owner = piece.owner[id];
    const Piece& of = pieces_[owner.piece];
    const uint32_t first = blocks_[of.first_block + owner.id / kBlockKeys].first_number;
    piece.number[id] = first + of.rank[owner.id];
  }
  for (uint32_t i = 0; i < block.num_new; ++i) {
    unique_[block.first_number + i] = keys[piece.new_ids[block.begin + i]];
  }
}

}  // namespace hdps
