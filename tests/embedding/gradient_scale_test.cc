// Tests the factors of the workers' gradients against values computed by hand.
#include "embedding/memory/gradient_scale.h"

#include <gtest/gtest.h>

namespace hdps {
namespace {

// Two workers with 3 examples and 1: sums of gradients 6 and 4.
float Combined(bool mean, bool cross_batch) {
  ParallelSpec parallel;
  parallel.gradients_mean = mean;
  parallel.cross_batch = cross_batch;
  const float sum = 6 * PartScale(parallel, 3) + 4 * PartScale(parallel, 1);
  return sum * SumScale(parallel, 2, 4);
}

TEST(GradientScaleTest, GradientsAreTheMeanOrTheSumOfExamplesOrOfMeans) {
  EXPECT_FLOAT_EQ(Combined(true, false), 2.5f) << "10 over 4 examples";
  EXPECT_FLOAT_EQ(Combined(false, false), 5) << "as often as there are workers";
  EXPECT_FLOAT_EQ(Combined(true, true), 3) << "the mean of 2 and 4";
  EXPECT_FLOAT_EQ(Combined(false, true), 6) << "their sum";
}

TEST(GradientScaleTest, AveragesMoveToTheMeanOfTheWorkersInAnyCase) {
  for (const bool mean : {false, true}) {
    for (const bool cross_batch : {false, true}) {
      ParallelSpec parallel;
      parallel.gradients_mean = mean;
      parallel.cross_batch = cross_batch;
      // A worker's part is multiplied by its examples, like its gradients.
      const float given = 3 * 0.5f * PartScale(parallel, 3) + 3 * 2.5f * PartScale(parallel, 3);
      EXPECT_FLOAT_EQ(given * SumScale(parallel, 2, 6) * AverageScale(parallel, 2), 1.5f);
    }
  }
}

}  // namespace
}  // namespace hdps
