// The plain loops themselves, against definitions that share no code with them.
#include "kernels/host/interactions.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "common/platform/random.h"
#include "kernels/host/loss.h"

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

TEST(Interactions, FmIsTheSumOverAllPairs) {
  constexpr size_t kRows = 9, kVectors = 5, kDim = 6;
  std::vector<float> x = RandomValues(kRows * kVectors * kDim, 1), out(kRows);
  Fm({x.data(), kRows, kVectors * kDim, kVectors * kDim}, kDim, {out.data(), kRows, 1, 1});
  for (size_t i = 0; i < kRows; ++i) {
    const float* v = x.data() + i * kVectors * kDim;
    double sum = 0;
    for (size_t a = 0; a < kVectors; ++a) {
      for (size_t b = 0; b < a; ++b) sum += DotOf(v + a * kDim, v + b * kDim, kDim);
    }
    EXPECT_NEAR(out[i], sum, 1e-5);
  }
}

TEST(Interactions, DotGivesPairsInOrderDenseVectorFirst) {
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
      EXPECT_NEAR(out[i * 6 + p], DotOf(v[pairs[p][0]], v[pairs[p][1]], kDim), 1e-5);
    }
  }
}

TEST(Loss, StaysFiniteAtTheEnds) {
  std::vector<float> logits = {-200.0f, 200.0f, 0.0f, -200.0f}, labels = {0, 1, 1, 1};
  std::vector<float> gradient(4), probabilities(4);
  std::vector<double> losses(4);
  Logloss({logits.data(), 4, 1, 1}, labels.data(),
          {{gradient.data(), 4, 1, 1}, probabilities.data(), losses.data()});
  EXPECT_NEAR(losses[0], 0, 1e-9);
  EXPECT_NEAR(losses[1], 0, 1e-9);
  EXPECT_NEAR(losses[2], std::log(2.0), 1e-12);
  EXPECT_NEAR(losses[3], 200, 1e-9);
  EXPECT_EQ(gradient[3], -1.0f);
  EXPECT_EQ(probabilities[2], 0.5f);

  std::vector<float> wide = {300.0f, -300.0f, 0.0f}, label = {1};
  std::vector<float> wide_gradient(3), wide_probabilities(3);
  SoftmaxLoss({wide.data(), 1, 3, 3}, label.data(),
              {{wide_gradient.data(), 1, 3, 3}, wide_probabilities.data(), losses.data()});
  EXPECT_NEAR(losses[0], 600, 1e-6);
  EXPECT_EQ(wide_gradient, (std::vector<float>{1, -1, 0}));
}

}  // namespace
}  // namespace hdps
