// One tile of a product of numbers in bf16, with sums in fp32.
#pragma once

#include <string_view>

#include "kernels/matrix.h"
#include "kernels/products/gemm.h"

namespace hdps {

// What multiplies: the processor's own instructions, or products in fp32 of the same rounded
// numbers, which are no faster and are there to see on any machine what the rounding does. Plain
// tiles are the loops of AMX without its instructions, for tests.
enum class Bf16Products : unsigned char { kNone, kWidened, kPlainTiles, kAvx512, kAmx };

// kNone where the processor, or the limit of vector widths, has neither AMX nor AVX512-BF16; the
// environment variable HDPS_WIDENED_BF16=1 makes it kWidened on every machine.
Bf16Products Bf16ProductsOfThisMachine();
// "AMX", "AVX512-BF16", "plain tiles", "widened fp32", "nothing".
std::string_view Bf16ProductsName(Bf16Products products);

// c = op(a) op(b) and what `spec` says, on the calling thread. Sums, bias and ReLU are in fp32; one
// rounding follows where `to` is in bf16, which knows no Write::kAdd. The bits depend on the shapes
// and on `by`, which is not kNone.
struct Bf16Tile {
  Matrix fp32;      // One of the two has data.
  Bf16Matrix bf16;  // Likewise.

  size_t rows() const { return fp32.data != nullptr ? fp32.rows : bf16.rows; }
  size_t cols() const { return fp32.data != nullptr ? fp32.cols : bf16.cols; }
};
void Bf16Gemm(Bf16Products by, const GemmSpec& spec, Bf16Matrix a, Bf16Matrix b,
              const Bf16Tile& to);

}  // namespace hdps
