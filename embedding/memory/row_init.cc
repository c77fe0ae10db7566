// Computes rows' initial weights from their keys alone, many at a time so that the loops are
// vectorized. Calls no mathematical library: its last bit differs between machines, and a row must
// not.
#include "embedding/memory/row_init.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "common/job/spec/init_spec.h"
#include "common/platform/random.h"

namespace hdps {
namespace {

constexpr size_t kTile = 128;                             // Weights computed together.
constexpr double kCentral = 0.425;                        // Largest |q| for the central formula.
constexpr uint64_t kBitsOf2To52 = uint64_t{0x433} << 52;  // The bits of 2^52 as a double.

// Converts x < 2^52 to double exactly, without the instruction that AVX2 lacks.
HDPS_INLINE double SmallToDouble(uint64_t x) {
  return std::bit_cast<double>(kBitsOf2To52 | x) - 0x1p52;
}

// Returns the natural logarithm of a normal number below 1 to a few ulp: x = m 2^e with m near 1,
// log m = 2 atanh((m - 1) / (m + 1)).
HDPS_INLINE double Log(double x) {
  constexpr uint64_t kFraction = (uint64_t{1} << 52) - 1;
  const auto bits = std::bit_cast<uint64_t>(x);
  const double half = std::bit_cast<double>((bits & kFraction) | uint64_t{0x3fe} << 52);
  const bool low = half < 0.70710678118654752;
  const double m = low ? half * 2 : half;
  const double exponent = SmallToDouble(bits >> 52) - 1022 - (low ? 1.0 : 0.0);
  const double s = (m - 1) / (m + 1);  // |s| < 0.172: eleven terms reach 2^-53.
  const double s2 = s * s;
  double series = 0;
#pragma GCC unroll 11
  for (int k = 21; k >= 1; k -= 2) series = series * s2 + 1.0 / k;
  return 2 * s * series + exponent * 0.69314718055994531;
}

// The normal quantile to seven figures (Wichura 1988, AS 241, PPND7): of 1/2 + q for q near 0, and
// of 1/2 - |q| elsewhere from r = sqrt(-log(1/2 - |q|)), for r up to 5 and beyond.
HDPS_INLINE double CentralQuantile(double q) {
  const double r = 0.180625 - q * q;
  return q * (((59.109374720 * r + 159.29113202) * r + 50.434271938) * r + 3.3871327179) /
         (((67.187563600 * r + 78.757757664) * r + 17.895169469) * r + 1.0);
}
HDPS_INLINE double TailQuantile(double root) {
  const double r = root - 1.6;
  return (((0.17023821103 * r + 1.3067284816) * r + 2.7568153900) * r + 1.4234372777) /
         ((0.12021132975 * r + 0.73700164250) * r + 1.0);
}
HDPS_INLINE double FarQuantile(double root) {
  const double r = root - 5;
  return (((0.017337203997 * r + 0.42868294337) * r + 3.0812263860) * r + 6.6579051150) /
         ((0.012258202635 * r + 0.24197894225) * r + 1.0);
}

// Turns random bits into values[count], standard normal numbers. The few in the tails are gathered
// first.
HDPS_INLINE void Normals(const uint64_t* __restrict bits, size_t count, double* __restrict values) {
  double q[kTile], root[kTile];
  uint32_t tail[kTile];
  for (size_t i = 0; i < count; ++i) {
    // The middle of one of 2^52 equal parts, less 1/2, so never an end of the interval.
    q[i] = SmallToDouble(bits[i] >> 12) * 0x1p-52 + 0x1p-53 - 0.5;
    values[i] = CentralQuantile(q[i]);
  }
  size_t num_tail = 0;
  for (size_t i = 0; i < count; ++i) {
    tail[num_tail] = static_cast<uint32_t>(i);
    num_tail += std::abs(q[i]) > kCentral ? 1 : 0;
  }
  double distance[kTile], quantile[kTile];
  for (size_t t = 0; t < num_tail; ++t) distance[t] = 0.5 - std::abs(q[tail[t]]);
  for (size_t t = 0; t < num_tail; ++t) {
    root[t] = std::sqrt(-Log(distance[t]));
    quantile[t] = TailQuantile(root[t]);
  }
  for (size_t t = 0; t < num_tail; ++t) {
    if (root[t] > 5) [[unlikely]]
      quantile[t] = FarQuantile(root[t]);
    values[tail[t]] = q[tail[t]] < 0 ? -quantile[t] : quantile[t];
  }
}

struct Making {
  const InitSpec& init;
  const uint64_t table_seed;
  std::span<const Key> keys;
  const size_t first_column;
  const size_t dim;
  std::byte* const* const rows;

  float* Row(size_t r) const { return reinterpret_cast<float*>(rows[r]); }
};

constexpr uint64_t kStep = 0x9e3779b97f4a7c15u;
// Returns where the stream of a key begins: its i-th number is MixBits(begin + kStep (i + 1)), as
// in RandomAt.
HDPS_INLINE uint64_t StreamBegin(uint64_t table_seed, Key key) {
  return MixBits(CombineKeys(table_seed, key) ^ kStep);
}

// Visits the rows of a tile. All rows are one long list of weights, so a tile may begin and end
// inside a row. Calls use(position in the tile, row, its first weight, how many).
template <typename Use>
HDPS_INLINE void ForRows(size_t begin, size_t count, size_t dim, const Use& use) {
  size_t row = begin / dim, first = begin % dim;
  for (size_t at = 0; at < count; ++row, first = 0) {
    const size_t part = std::min(count - at, dim - first);
    use(at, row, first, part);
    at += part;
  }
}

HDPS_INLINE void RandomBits(const Making& m, size_t begin, size_t count,
                            uint64_t* __restrict bits) {
  if (m.dim == 1) {
    const Key* const keys = m.keys.data() + begin;
    for (size_t i = 0; i < count; ++i)
      bits[i] = MixBits(StreamBegin(m.table_seed, keys[i]) + kStep * (m.first_column + 1));
    return;
  }
  ForRows(
      begin, count,
      m.dim, [&](size_t at, size_t row, size_t first, size_t part) __attribute__((always_inline)) {
        const uint64_t stream = StreamBegin(m.table_seed, m.keys[row]);
        const size_t column = m.first_column + first;
        uint64_t* const own = bits + at;
        for (size_t i = 0; i < part; ++i) own[i] = MixBits(stream + kStep * (column + i + 1));
      });
}

template <InitKind kKind>
HDPS_INLINE void MakeAll(const Making& m) {
  const size_t total = m.keys.size() * m.dim;
  const float scale = m.init.scale;
  uint64_t bits[kTile];
  double values[kTile];
  float weights[kTile];
  for (size_t begin = 0; begin < total; begin += kTile) {
    const size_t count = std::min(kTile, total - begin);
    RandomBits(m, begin, count, bits);
    if constexpr (kKind == InitKind::kNormal) {
      Normals(bits, count, values);
      for (size_t i = 0; i < count; ++i) weights[i] = static_cast<float>(values[i] * scale);
    } else {
      for (size_t i = 0; i < count; ++i) {
        // 24 bits fit an int too, which vector instructions convert.
        const auto unit = static_cast<float>(static_cast<int32_t>(bits[i] >> 40)) * 0x1.0p-24f;
        weights[i] = (2 * unit - 1) * scale;
      }
    }
    ForRows(
        begin, count, m.dim,
        [&](size_t at, size_t row, size_t first, size_t part) __attribute__((always_inline)) {
          std::copy_n(weights + at, part, m.Row(row) + first);
        });
  }
}

void FillAll(const Making& m, float weight) {
  for (size_t r = 0; r < m.keys.size(); ++r) std::fill_n(m.Row(r), m.dim, weight);
}

}  // namespace

void InitRows(VectorWidth width, const InitSpec& init, uint64_t seed, TableId table,
              std::span<const Key> keys, size_t first_column, size_t dim, std::byte* const* rows) {
  if (dim == 0) return;
  const Making making{init, RandomAt(seed, table.value), keys, first_column, dim, rows};
  switch (init.kind) {
    case InitKind::kZeros:
      return FillAll(making, 0);
    case InitKind::kConstant:
      return FillAll(making, init.scale);
    case InitKind::kUniform:
      return WithVectors(
          width, [&]() __attribute__((always_inline)) { MakeAll<InitKind::kUniform>(making); });
    case InitKind::kNormal:
      return WithVectors(
          width, [&]() __attribute__((always_inline)) { MakeAll<InitKind::kNormal>(making); });
  }
}

void InitRow(const InitSpec& init, uint64_t seed, TableId table, Key key,
             std::span<float> weights) {
  auto* const row = reinterpret_cast<std::byte*>(weights.data());
  InitRows(VectorWidth::kPlain, init, seed, table, {&key, 1}, 0, weights.size(), &row);
}

}  // namespace hdps
