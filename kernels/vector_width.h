// The widths of this machine's vectors, to choose among the copies of a loop at run time.
#pragma once

#include <optional>
#include <string_view>
#include <type_traits>

// Forces inlining, for functions that must be compiled for the caller's vector width.
#define HDPS_INLINE inline __attribute__((always_inline))
// Mark a copy of a loop for a vector width. All copies give the same bits, since nothing is
// contracted or reassociated, except in small_gemm.cc.
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

// Returns the widest vectors of this machine, within the limit.
VectorWidth WidestVectors();
// Returns the limit in the environment variable HDPS_MAX_VECTOR_WIDTH, by the names above: the
// loops here and the library of matrix products then compute as on a machine without wider vectors.
// Read once.
std::optional<VectorWidth> VectorWidthLimit();
// Returns whether the environment variable HDPS_WIDENED_BF16 is 1, so that products of bf16 numbers
// are computed in fp32 on any machine. Read once.
bool WidenedBf16Asked();

// Floats in memory as one vector of that width: aligned like a float, and allowed to alias floats.
// (A wider vector type would go through the stack in pieces.) As the argument of a template gcc
// keeps the alignment of `using` alone, and clang drops that of `using` everywhere.
#ifdef __clang__
#define HDPS_FLOATS(bytes, name) \
  typedef float name __attribute__((vector_size(bytes), aligned(4), may_alias))
#else
#define HDPS_FLOATS(bytes, name) \
  using name = float __attribute__((vector_size(bytes), aligned(4), may_alias))
#endif
template <VectorWidth kWidth>
struct FloatsOf {
  HDPS_FLOATS(16, Vec);
};
template <>
struct FloatsOf<VectorWidth::kAvx2> {
  HDPS_FLOATS(32, Vec);
};
template <>
struct FloatsOf<VectorWidth::kAvx512> {
  HDPS_FLOATS(64, Vec);
};

// The width of a copy, for work that needs it at compile time.
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
// Runs work(), or work(CopyFor<width>()), in a copy compiled for `width`. Functions that should use
// these vectors must be HDPS_INLINE, and so must the lambda, by `__attribute__((always_inline))`.
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
