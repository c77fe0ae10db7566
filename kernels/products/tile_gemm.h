// Products of bf16 numbers by the tiles of AMX.
#pragma once

#include "kernels/products/bf16_gemm.h"
#include "kernels/products/tiled_operand.h"

namespace hdps {

// c = left right, then the following fields in their order. Each element's sum runs over the depth
// in one order, whichever part of c is computed at once.
struct TileProduct {
  // [rows, depth]: row-major, or, if it has no data, in tiles.
  Bf16Matrix left;
  TiledOperand left_tiles;
  TiledOperand right;           // [depth, cols]
  Write write = Write::kOver;   // kAdd: c += left right; only in fp32.
  const float* bias = nullptr;  // [cols]; null: none.
  bool relu = false;
  Bf16Matrix masked_by;  // [rows, cols]: c is zero where this is not positive; unused without data.
  Bf16Tile c;            // [rows, cols]
};

// The rows and columns of c that one thread computes at once; they begin at multiples of 32.
struct TilePiece {
  size_t row, rows, col, cols;
};
using TileGemm = void (*)(const TileProduct& product, const TilePiece& piece);
TileGemm PlainTileGemm();  // The specification, up to rounding.
// Computes by AMX. Null if the system does not let this process use it.
TileGemm AmxTileGemm();

}  // namespace hdps
