// The distinct keys of a long list, found by many threads.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "common/executor.h"
#include "common/ids.h"
#include "kernels/key_table.h"
#include "kernels/unique_keys.h"
#include "kernels/vector_width.h"

namespace hdps {

// Each piece of the list has a table of its own; then the distinct keys of each, far fewer, are
// looked up in the tables of the pieces before it, and what is new gets its number. So the numbers
// are those of first sight, for any number of pieces and threads. Its memory is kept.
class KeyPieces {
 public:
  // As UniqueKeys::Find.
  void Find(VectorWidth width, std::span<const KeyColumn> columns, Executor& executor);
  std::span<const Key> unique() const { return unique_; }

 private:
  // Where a distinct key of a piece was seen first, itself included.
  struct Owner {
    uint32_t piece, id;
  };
  struct Piece {
    std::vector<KeyColumn> columns;
    KeyTable table;
    std::vector<Owner> owner;       // [distinct keys of the piece]
    std::vector<uint32_t> rank;     // [distinct keys]: of a new one among those of its block
    std::vector<uint32_t> new_ids;  // [distinct keys]: those of a block from its begin on
    std::vector<uint32_t> number;   // [distinct keys]
    size_t first_block = 0;
  };
  // Some of the distinct keys of a piece.
  struct Block {
    uint32_t piece, begin, end;
    uint32_t num_new;
    uint32_t first_number;
  };

  void Cut(std::span<const KeyColumn> columns, size_t pieces);
  void CutBlocks();
  void FindOwners(Block* block);
  void NumberNew();
  void NumberBlock(const Block& block);

  size_t num_pieces_ = 0;
  std::vector<Piece> pieces_;  // The first num_pieces_ are in use.
  std::vector<Block> blocks_;
  std::vector<Key> unique_;
};

}  // namespace hdps
