// Asks the processor, and what the environment allows of it.
#include "kernels/vector_width.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>

namespace hdps {
namespace {

constexpr char kLimitVariable[] = "HDPS_MAX_VECTOR_WIDTH";

VectorWidth AskProcessor() {
  __builtin_cpu_init();
  // Every processor that has AVX2 has F16C, which clang 14 cannot ask for.
  if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma")) return VectorWidth::kPlain;
  const bool avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
                      __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq");
  return avx512 ? VectorWidth::kAvx512 : VectorWidth::kAvx2;
}

std::optional<VectorWidth> AskEnvironment() {
  const char* const value = std::getenv(kLimitVariable);
  if (value == nullptr || *value == '\0') return std::nullopt;
  for (const VectorWidth width : {VectorWidth::kPlain, VectorWidth::kAvx2, VectorWidth::kAvx512}) {
    if (VectorWidthName(width) == value) return width;
  }
  // The operator's mistake, met below everything that could hand a status on.
  std::fprintf(stderr, "error: the environment variable %s is '%s': plain, avx2 or avx512\n",
               kLimitVariable, value);
  std::_Exit(2);
}

}  // namespace

std::string_view VectorWidthName(VectorWidth width) {
  switch (width) {
    case VectorWidth::kPlain:
      return "plain";
    case VectorWidth::kAvx2:
      return "avx2";
    case VectorWidth::kAvx512:
      return "avx512";
  }
  return "";
}

std::optional<VectorWidth> VectorWidthLimit() {
  static const std::optional<VectorWidth> limit = AskEnvironment();
  return limit;
}

VectorWidth WidestVectors() {
  static const VectorWidth widest =
      std::min(AskProcessor(), VectorWidthLimit().value_or(VectorWidth::kAvx512));
  return widest;
}

}  // namespace hdps
