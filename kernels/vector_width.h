// How wide the vectors of this machine are, to choose among the copies of a loop at run time.
#pragma once

#include <optional>
#include <string_view>
#include <type_traits>

// A function that the callers' vector width is to reach is inlined into them, whatever it costs.
#define HDPS_INLINE inline __attribute__((always_inline))
// Copies of a loop: `__attribute__((target(...)))` for the named widths. Their results are the same
// bits, since nothing is contracted or reassociated; but in small_gemm.cc.
#define HDPS_AVX2 __attribute__((target("avx2,fma,f16c")))
#ifdef __clang__
#define HDPS_AVX512 __attribute__((target("avx2,fma,f16c,avx512f,avx512vl,avx512bw,avx512dq")))
#else
#define HDPS_AVX512 \
  __attribute__((   \
      target("avx2,fma,f16c,avx512f,avx512vl,avx512bw,avx512dq,prefer-vector-width=512")))
#endif

namespace hdps {

enum class VectorWidth { kPlain, kAvx2, kAvx512 };

// "plain", "avx2", "avx512".
std::string_view VectorWidthName(VectorWidth width);

// The widest that this machine has, and no wider than the limit.
VectorWidth WidestVectors();
// What the environment variable HDPS_MAX_VECTOR_WIDTH allows, by the names above: the loops here
// and the library of matrix products then compute as on a machine that has no wider vectors. Read
// once.
std::optional<VectorWidth> VectorWidthLimit();
// Whether the environment variable HDPS_WIDENED_BF16 is 1: products of numbers in bf16 are to be
// computed in fp32, on any machine. Read once.
bool WidenedBf16Asked();

// Floats in memory that are one vector of that width (a wider one would go through the stack piece
// by piece): aligned like a float, and allowed to look at floats.
template <VectorWidth kWidth>
struct FloatsOf {
  using Vec = float __attribute__((vector_size(16), aligned(4), may_alias));
};
template <>
struct FloatsOf<VectorWidth::kAvx2> {
  using Vec = float __attribute__((vector_size(32), aligned(4), may_alias));
};
template <>
struct FloatsOf<VectorWidth::kAvx512> {
  using Vec = float __attribute__((vector_size(64), aligned(4), may_alias));
};

// The width of a copy, for work that must know it when it is compiled.
template <VectorWidth kWidth>
struct CopyFor {
  static constexpr VectorWidth width = kWidth;
};
template <VectorWidth kWidth, typename Work>
HDPS_INLINE auto RunCopy(const Work& work) {
  if constexpr (std::is_invocable_v<Work, CopyFor<kWidth>>) {
    return work(CopyFor<kWidth>());
  } else {
    return work();
  }
}

template <typename Work>
HDPS_AVX2 auto WithAvx2(const Work& work) {
  return RunCopy<VectorWidth::kAvx2>(work);
}
template <typename Work>
HDPS_AVX512 auto WithAvx512(const Work& work) {
  return RunCopy<VectorWidth::kAvx512>(work);
}
// work(), or work(CopyFor<width>()), in a copy that was compiled for `width`: what is to have these
// vectors is HDPS_INLINE, and so is the lambda itself, by `__attribute__((always_inline))`.
template <typename Work>
auto WithVectors(VectorWidth width, const Work& work) {
  switch (width) {
    case VectorWidth::kAvx2:
      return WithAvx2(work);
    case VectorWidth::kAvx512:
      return WithAvx512(work);
    case VectorWidth::kPlain:
      break;
  }
  return RunCopy<VectorWidth::kPlain>(work);
}

}  // namespace hdps
