// Computes one tile of a product of bf16 numbers, with sums in fp32.
#pragma once

#include <string_view>

#include "kernels/matrix.h"
#include "kernels/products/gemm.h"

namespace hdps {

// The unit that multiplies. kAvx512 and kAmx are instructions of the processor. kWidened multiplies
// the same rounded numbers in fp32; it is no faster, and shows the effect of rounding on any
// machine. kPlainTiles runs the loops of AMX without its instructions, for tests.
enum class Bf16Products : unsigned char { kNone, kWidened, kPlainTiles, kAvx512, kAmx };

// Returns kNone if the processor, or the limit of vector widths, has neither AMX nor AVX512-BF16.
// The environment variable HDPS_WIDENED_BF16=1 makes it kWidened on every machine.
Bf16Products Bf16ProductsOfThisMachine();
// "AMX", "AVX512-BF16", "plain tiles", "widened fp32", "nothing".
std::string_view Bf16ProductsName(Bf16Products products);

// The result of a product, in fp32 or bf16. Bf16Gemm computes c = op(a) op(b) and applies `spec`,
// on the calling thread. Sums, bias and ReLU are in fp32; a result in bf16 is rounded once, and
// does not allow Write::kAdd. The bits depend on the shapes and on `by`, which must not be kNone.
struct Bf16Tile {
  Matrix fp32;      // Exactly one of the two has data.
  Bf16Matrix bf16;  // Exactly one of the two has data.

  size_t rows() const { return fp32.data != nullptr ? fp32.rows : bf16.rows; }
  size_t cols() const { return fp32.data != nullptr ? fp32.cols : bf16.cols; }
};
void Bf16Gemm(Bf16Products by, const GemmSpec& spec, Bf16Matrix a, Bf16Matrix b,
              const Bf16Tile& to);

}  // namespace hdps
