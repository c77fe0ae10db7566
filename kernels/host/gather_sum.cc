// Sums gathered rows, in one source for all vector widths: each function is compiled for one width.
#include "kernels/host/gather_sum.h"

#include "kernels/vector_width.h"

namespace hdps {
namespace {

constexpr size_t kLineFloats = 16;

// A row of a tile, kept in registers if the compiler unrolls the loops over it.
template <VectorWidth kVectors>
struct TileRow {
  using Vec = typename FloatsOf<kVectors>::Vec;
  static constexpr size_t kWidth = sizeof(Vec) / sizeof(float);
  static constexpr size_t kCount = kGatherTile / kWidth;
  Vec at[kCount];

  static HDPS_INLINE const Vec& Of(const float* from, size_t v) {
    return *reinterpret_cast<const Vec*>(from + v * kWidth);
  }
  HDPS_INLINE void Begin(const float* from) {
#pragma GCC unroll 16
    for (size_t v = 0; v < kCount; ++v) at[v] = from == nullptr ? Vec{} : Of(from, v);
  }
  HDPS_INLINE void Add(const float* from) {
#pragma GCC unroll 16
    for (size_t v = 0; v < kCount; ++v) at[v] += Of(from, v);
  }
  HDPS_INLINE void AddTimes(float factor, const float* from) {
#pragma GCC unroll 16
    for (size_t v = 0; v < kCount; ++v) at[v] += factor * Of(from, v);
  }
  HDPS_INLINE void Store(float* to) const {
#pragma GCC unroll 16
    for (size_t v = 0; v < kCount; ++v) *reinterpret_cast<Vec*>(to + v * kWidth) = at[v];
  }
};

template <VectorWidth kVectors>
HDPS_INLINE void AddSources(std::span<const GatherSource> sources, size_t stride, size_t count,
                            float* sum) {
  for (size_t i = 0; i < count; ++i) {
    TileRow<kVectors> total;
    total.Begin(sum + i * kGatherTile);
    for (const GatherSource& source : sources) total.Add(source.rows + source.index[i] * stride);
    total.Store(sum + i * kGatherTile);
  }
}

template <VectorWidth kVectors>
HDPS_INLINE void AddSegments(const GatherSegments& segments, Write write, const float* rows,
                             size_t stride, float* sum) {
  const uint32_t* const index = segments.index;
  for (size_t i = 0; i < segments.count(); ++i) {
    TileRow<kVectors> total;
    total.Begin(write == Write::kAdd ? sum + i * kGatherTile : nullptr);
    const uint32_t end = segments.begin[i + 1];
    for (uint32_t e = segments.begin[i]; e < end; ++e) {
      // The end of a segment is unpredictable, so the processor does not run far ahead by itself.
      const float* const ahead = rows + index[e + kGatherAhead] * stride;
      for (size_t line = 0; line < kGatherTile; line += kLineFloats) {
        __builtin_prefetch(ahead + line);
      }
      const float* const row = rows + index[e] * stride;
      if (segments.factors == nullptr) {
        total.Add(row);
      } else {
        total.AddTimes(segments.factors[e], row);
      }
    }
    total.Store(sum + i * kGatherTile);
  }
}

#define HDPS_GATHER_LOOPS(Name, target)                                                            \
  target void AddSources##Name(std::span<const GatherSource> sources, size_t stride, size_t count, \
                               float* sum) {                                                       \
    AddSources<VectorWidth::k##Name>(sources, stride, count, sum);                                 \
  }                                                                                                \
  target void AddSegments##Name(const GatherSegments& segments, Write write, const float* rows,    \
                                size_t stride, float* sum) {                                       \
    AddSegments<VectorWidth::k##Name>(segments, write, rows, stride, sum);                         \
  }

HDPS_GATHER_LOOPS(Plain, )
HDPS_GATHER_LOOPS(Avx2, HDPS_AVX2)
HDPS_GATHER_LOOPS(Avx512, HDPS_AVX512)

}  // namespace

GatherLoops PlainGatherLoops() { return {AddSourcesPlain, AddSegmentsPlain}; }

GatherLoops GatherLoopsOfThisMachine() {
  switch (WidestVectors()) {
    case VectorWidth::kAvx512:
      return {AddSourcesAvx512, AddSegmentsAvx512};
    case VectorWidth::kAvx2:
      return {AddSourcesAvx2, AddSegmentsAvx2};
    case VectorWidth::kPlain:
      break;
  }
  return PlainGatherLoops();
}

}  // namespace hdps
