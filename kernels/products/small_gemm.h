// Products with few columns and little depth, for which a general library spends its time on
// packing.
#pragma once

#include <cstddef>

#include "kernels/matrix.h"

namespace hdps {

// c[i, j] (+)= sum over k of a[i * a_row + k * a_depth] * b[k * b_stride + j]. `a` can thus be a
// row-major matrix or a transposed one.
struct SmallGemm {
  const float* a = nullptr;
  size_t a_row = 0, a_depth = 1;
  const float* b = nullptr;
  size_t b_stride = 0;
  float* c = nullptr;
  size_t c_stride = 0;
  size_t rows = 0, depth = 0;
  size_t cols = 0;  // A multiple of kSmallProductCols.
  Write write = Write::kOver;
};
inline constexpr size_t kSmallProductCols = 16;
inline constexpr size_t kSmallProductTile = 64;  // An a_row with its own loop.

// Returns the loop for the widest vectors of this machine. Each sum runs in order of k, with fused
// multiply-add if the processor has it, so the bits depend on the kind of processor.
using SmallGemmLoop = void (*)(const SmallGemm&);
SmallGemmLoop SmallGemmOfThisMachine();
SmallGemmLoop PlainSmallProduct();  // The specification, up to rounding.

}  // namespace hdps
