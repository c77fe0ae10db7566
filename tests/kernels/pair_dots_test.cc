// Tests the plain loop of the pair dots against a definition that shares no code with it.
#include "kernels/host/pair_dots.h"

#include <gtest/gtest.h>

#include <vector>

#include "common/platform/random.h"
#include "tests/error_bound.h"

namespace hdps {
namespace {

std::vector<float> RandomValues(size_t count, uint64_t seed) {
  Random random(seed);
  std::vector<float> values(count);
  for (float& x : values) x = static_cast<float>(2 * random.Unit() - 1);
  return values;
}

double DotOf(const float* x, const float* y, size_t dim) {
  double sum = 0;
  for (size_t d = 0; d < dim; ++d) sum += double{x[d]} * double{y[d]};
  return sum;
}

TEST(PairDots, PairsComeInOrderDenseVectorFirst) {
  constexpr size_t kRows = 4, kDim = 7;
  std::vector<float> e = RandomValues(kRows * 3 * kDim, 1), dense = RandomValues(kRows * kDim, 2);
  std::vector<float> out(kRows * 6);
  const DotInputs in{
      {e.data(), kRows, 3 * kDim, 3 * kDim}, {dense.data(), kRows, kDim, kDim}, kDim};
  ASSERT_EQ(DotWidth(in.num_vectors()), 6u);
  Dot(in, {out.data(), kRows, 6, 6});
  for (size_t i = 0; i < kRows; ++i) {
    const float* v[] = {dense.data() + i * kDim, e.data() + i * 3 * kDim,
                        e.data() + (i * 3 + 1) * kDim, e.data() + (i * 3 + 2) * kDim};
    const size_t pairs[6][2] = {{1, 0}, {2, 0}, {2, 1}, {3, 0}, {3, 1}, {3, 2}};
    for (size_t p = 0; p < 6; ++p) {
      // Each of the kDim products is at most 1.
      EXPECT_NEAR(out[i * 6 + p], DotOf(v[pairs[p][0]], v[pairs[p][1]], kDim),
                  SumErrorBound(kDim, kDim));
    }
  }
}

}  // namespace
}  // namespace hdps
