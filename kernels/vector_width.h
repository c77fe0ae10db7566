// How wide the vectors of this machine are, to choose among the copies of a loop at run time.
#pragma once

// A function that the callers' vector width is to reach is inlined into them, whatever it costs.
#define HDPS_INLINE inline __attribute__((always_inline))
// Copies of a loop: `__attribute__((target(...)))` for the named widths. Their results are the same
// bits, since nothing is contracted or reassociated.
#define HDPS_AVX2 __attribute__((target("avx2,f16c")))
#ifdef __clang__
#define HDPS_AVX512 __attribute__((target("avx2,f16c,avx512f,avx512vl,avx512bw,avx512dq")))
#else
#define HDPS_AVX512 \
  __attribute__((target("avx2,f16c,avx512f,avx512vl,avx512bw,avx512dq,prefer-vector-width=512")))
#endif

namespace hdps {

enum class VectorWidth { kPlain, kAvx2, kAvx512 };

// The widest that this machine has.
VectorWidth WidestVectors();

template <typename Work>
HDPS_AVX2 auto WithAvx2(const Work& work) {
  return work();
}
template <typename Work>
HDPS_AVX512 auto WithAvx512(const Work& work) {
  return work();
}
// work(), in a copy that was compiled for `width`: what is to have these vectors is HDPS_INLINE,
// and so is the lambda itself, by `__attribute__((always_inline))`.
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
  return work();
}

}  // namespace hdps
