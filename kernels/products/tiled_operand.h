// The layout of operands of bf16 products, for a processor that multiplies tiles of 16 rows of 64
// bytes.
//
// A left operand [rows, depth] is cut into tiles of 16 rows by 32 of depth, in row order. A right
// operand [depth, cols] is cut into tiles of 32 of depth by 16 columns; row i of such a tile holds,
// column after column, the adjacent numbers 2i and 2i + 1 of the depth. (Intel 64 and IA-32
// Architectures Software Developer's Manual, volume 2, TDPBF16PS.)
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/matrix.h"

namespace hdps {

inline constexpr size_t kTileSide = 16;              // Rows of a left tile, columns of a right one.
inline constexpr size_t kTileDepth = 32;             // Numbers multiplied into one sum.
inline constexpr size_t kBlockSide = 2 * kTileSide;  // Two tiles, multiplied at once.
inline constexpr size_t kTileNumbers = kTileSide * kTileDepth;

// Blocks of two tiles in sequence: those of the first 32 rows (or columns) in the order of the
// depth, then those of the next 32. Padded with zeros where a block extends beyond the operand.
struct TiledOperand {
  uint16_t* data = nullptr;  // Begins at a cache line.
  size_t depth_blocks = 0;

  static size_t Blocks(size_t numbers) { return (numbers + kBlockSide - 1) / kBlockSide; }
  static size_t Numbers(size_t side, size_t depth) {
    return Blocks(side) * Blocks(depth) * 2 * kTileNumbers;
  }
  uint16_t* Block(size_t side_block, size_t depth_block) const {
    return data + (side_block * depth_blocks + depth_block) * 2 * kTileNumbers;
  }
};

// Functions that lay out block `block` of an operand's rows or columns, over the whole depth.
struct TileLoops {
  // Lays out b [depth, cols] as a right operand. With `sums` [32], sums[j] is the sum of column j
  // of the block over the rows, in their order.
  void (*right)(Bf16Matrix b, size_t block, TiledOperand to, float* sums);
  // Lays out a right operand, given its transposed matrix `b` [cols, depth].
  void (*right_of_transposed)(Bf16Matrix b, size_t block, TiledOperand to);
  // Lays out a left operand, given its transposed matrix `a` [depth, rows].
  void (*left_of_transposed)(Bf16Matrix a, size_t block, TiledOperand to);
};
TileLoops PlainTileLoops();   // The specification.
TileLoops Avx512TileLoops();  // For processors with AMX, all of which have AVX-512.

}  // namespace hdps
