// A row's first weights, from its key alone. No call of the mathematical library: its last bit
// differs between machines, and a row must not.
#include <cmath>

#include "common/random.h"
#include "embedding/table.h"

namespace hdps {
namespace {

// The natural logarithm to a few ulp: x = m 2^e with m near 1, log m = 2 atanh((m - 1) / (m + 1)).
double Log(double x) {
  int exponent = 0;
  double m = std::frexp(x, &exponent);
  if (m < 0.70710678118654752) {
    m *= 2;
    --exponent;
  }
  const double s = (m - 1) / (m + 1);  // |s| < 0.172: eleven terms reach 2^-53.
  const double s2 = s * s;
  double series = 0;
  for (int k = 21; k >= 1; k -= 2) series = series * s2 + 1.0 / k;
  return 2 * s * series + exponent * 0.69314718055994531;
}

// The normal quantile of p in (0, 1), to seven figures (Wichura 1988, AS 241, PPND7).
double NormalQuantile(double p) {
  const double q = p - 0.5;
  if (std::abs(q) <= 0.425) {
    const double r = 0.180625 - q * q;
    return q * (((59.109374720 * r + 159.29113202) * r + 50.434271938) * r + 3.3871327179) /
           (((67.187563600 * r + 78.757757664) * r + 17.895169469) * r + 1.0);
  }
  double r = std::sqrt(-Log(q < 0 ? p : 1 - p));
  double tail;
  if (r <= 5) {
    r -= 1.6;
    tail = (((0.17023821103 * r + 1.3067284816) * r + 2.7568153900) * r + 1.4234372777) /
           ((0.12021132975 * r + 0.73700164250) * r + 1.0);
  } else {
    r -= 5;
    tail = (((0.017337203997 * r + 0.42868294337) * r + 3.0812263860) * r + 6.6579051150) /
           ((0.012258202635 * r + 0.24197894225) * r + 1.0);
  }
  return q < 0 ? -tail : tail;
}

}  // namespace

void InitRow(const InitSpec& init, uint64_t seed, TableId table, Key key,
             std::span<float> weights) {
  const uint64_t stream = CombineKeys(RandomAt(seed, table.value), key);
  switch (init.kind) {
    case InitKind::kZeros:
      for (float& weight : weights) weight = 0;
      return;
    case InitKind::kConstant:
      for (float& weight : weights) weight = init.scale;
      return;
    case InitKind::kUniform:
      for (size_t i = 0; i < weights.size(); ++i) {
        weights[i] = (2 * UnitFloat(RandomAt(stream, i)) - 1) * init.scale;
      }
      return;
    case InitKind::kNormal:
      for (size_t i = 0; i < weights.size(); ++i) {
        // The middle of one of 2^52 equal parts: never 0 or 1.
        const double p = static_cast<double>(RandomAt(stream, i) >> 12) * 0x1p-52 + 0x1p-53;
        weights[i] = static_cast<float>(NormalQuantile(p) * init.scale);
      }
      return;
  }
}

}  // namespace hdps
