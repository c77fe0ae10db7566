// Products of numbers in bf16 by the tiles that AMX multiplies.
#pragma once

#include "kernels/products/bf16_gemm.h"
#include "kernels/products/tiled_operand.h"

namespace hdps {

// c = left right, then what the fields say in their order. Each element's sum runs over the depth
// in one order, whatever part of c is computed at once.
struct TileProduct {
  // [rows, depth]: as a matrix lies, or, without its data, in tiles.
  Bf16Matrix left;
  TiledOperand left_tiles;
  TiledOperand right;           // [depth, cols]
  Write write = Write::kOver;   // kAdd: c += left right; in fp32 alone.
  const float* bias = nullptr;  // [cols]; null: none.
  bool relu = false;
  Bf16Matrix masked_by;  // [rows, cols]: c is zero where this is not positive; without data: not.
  Bf16Tile c;            // [rows, cols]
};

// Rows and columns of c that one thread computes at once, from multiples of 32 on.
struct TilePiece {
  size_t row, rows, col, cols;
};
using TileGemm = void (*)(const TileProduct& product, const TilePiece& piece);
TileGemm PlainTileGemm();  // The specification, up to rounding.
// By AMX. Null where the system does not let this process use it.
TileGemm AmxTileGemm();

}  // namespace hdps
