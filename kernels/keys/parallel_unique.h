// The distinct keys of a long list, found by many threads.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "common/base/ids.h"
#include "common/platform/executor.h"
#include "kernels/keys/key_table.h"
#include "kernels/keys/unique_keys.h"
#include "kernels/vector_width.h"

namespace hdps {

// Each piece of the list has a table of its own, where its keys get the piece's ids; then the
// distinct keys of each but the first, far fewer, are looked up in the tables of the pieces before
// it, and what is new gets its number. The ids of the first piece are its numbers. So the numbers
// are those of first sight, for any number of pieces and threads. Its memory is kept.
class ParallelUnique {
 public:
  // index[i] becomes the id of its key in its piece.
  void Find(VectorWidth width, std::span<const KeyColumn> columns, Executor& executor);
  // In order of first sight.
  std::span<const Key> unique() const { return unique_; }
  // index[i] = places[position of its key in unique()]. Once after Find, by the same executor.
  void Place(VectorWidth width, const uint32_t* places, Executor& executor);

 private:
  // A key of a piece that another one before it, not the first, has seen first.
  struct SeenBefore {
    uint32_t id, piece, id_there;
  };
  struct Piece {
    std::vector<KeyColumn> columns;
    KeyTable table;
    // All [distinct keys of the piece]; in the last two a block's begin at its begin.
    std::vector<uint32_t> number;
    std::vector<uint32_t> new_ids;
    std::vector<SeenBefore> seen_before;
  };
  // Some of the distinct keys of a piece.
  struct Block {
    uint32_t piece, begin, end;
    uint32_t num_new, num_seen_before;
    uint32_t first_number;  // Of the new ones.
  };
  // Keys of a piece that get their numbers at once.
  struct Stretch {
    uint32_t piece;
    uint32_t* index;
    size_t count;
  };

  void Cut(std::span<const KeyColumn> columns, size_t pieces);
  void CutBlocks();
  void CutStretches();
  HDPS_INLINE void FindNew(Block* block);
  void CountNew();
  void NumberNew(const Block& block);
  void NumberSeenBefore(const Block& block);

  size_t num_pieces_ = 0;
  std::vector<Piece> pieces_;  // The first num_pieces_ are in use.
  std::vector<Block> blocks_;  // Piece by piece.
  size_t blocks_of_first_ = 0;
  std::vector<Stretch> stretches_;
  std::vector<Key> unique_;
};

}  // namespace hdps
