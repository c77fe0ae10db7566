// Asks the processor.
#include "kernels/vector_width.h"

namespace hdps {

VectorWidth WidestVectors() {
  __builtin_cpu_init();
  // Every processor that has AVX2 has F16C, which clang 14 cannot ask for.
  if (!__builtin_cpu_supports("avx2")) return VectorWidth::kPlain;
  const bool avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
                      __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq");
  return avx512 ? VectorWidth::kAvx512 : VectorWidth::kAvx2;
}

}  // namespace hdps
