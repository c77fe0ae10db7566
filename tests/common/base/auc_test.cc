// AUC and logloss against the plain definitions.
#include "common/base/auc.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "common/platform/random.h"

namespace hdps {
namespace {

// Every pair of a positive and a negative, as the definition says.
double AucOfAllPairs(const std::vector<float>& scores, const std::vector<float>& labels) {
  double won = 0, pairs = 0;
  for (size_t i = 0; i < scores.size(); ++i) {
    for (size_t j = 0; j < scores.size(); ++j) {
      if (labels[i] <= 0.5f || labels[j] > 0.5f) continue;
      pairs += 1;
      won += scores[i] > scores[j] ? 1 : scores[i] == scores[j] ? 0.5 : 0;
    }
  }
  return won / pairs;
}

TEST(ExactAuc, EqualsAllPairsWithAnyNumberOfTies) {
  for (uint64_t seed = 0; seed < 60; ++seed) {
    Random random(seed);
    const size_t n = 2 + random.Below(300);
    const uint64_t distinct = 1 + random.Below(seed % 3 == 0 ? 4 : 1000);
    std::vector<float> scores(n), labels(n);
    for (size_t i = 0; i < n; ++i) {
      scores[i] = static_cast<float>(random.Below(distinct)) / static_cast<float>(distinct);
      labels[i] = random.Below(3) == 0 ? 1.0f : 0.0f;
    }
    labels[0] = 0;
    labels[1] = 1;
    EXPECT_NEAR(ExactAuc(scores, labels), AucOfAllPairs(scores, labels), 1e-12) << "seed " << seed;
  }
}

TEST(ExactAuc, KnowsTheExtremes) {
  const std::vector<float> labels = {0, 0, 1, 1};
  EXPECT_EQ(ExactAuc(std::vector<float>{1, 2, 3, 4}, labels), 1);
  EXPECT_EQ(ExactAuc(std::vector<float>{4, 3, 2, 1}, labels), 0);
  EXPECT_EQ(ExactAuc(std::vector<float>{7, 7, 7, 7}, labels), 0.5);
  const float infinity = std::numeric_limits<float>::infinity();
  EXPECT_EQ(ExactAuc(std::vector<float>{-infinity, 0, 0, infinity}, labels), 0.875);
}

TEST(ExactAuc, DoesNotDependOnTheOrder) {
  Random random(5);
  std::vector<float> scores(500), labels(500);
  for (size_t i = 0; i < scores.size(); ++i) {
    scores[i] = static_cast<float>(random.Below(50));
    labels[i] = static_cast<float>(random.Below(2));
  }
  const double auc = ExactAuc(scores, labels);
  for (size_t i = scores.size() - 1; i > 0; --i) {
    const size_t j = random.Below(i + 1);
    std::swap(scores[i], scores[j]);
    std::swap(labels[i], labels[j]);
  }
  EXPECT_EQ(ExactAuc(scores, labels), auc);
}

TEST(ExactAuc, IsNanWithoutAPairOrAPlace) {
  EXPECT_TRUE(std::isnan(ExactAuc({}, {})));
  EXPECT_TRUE(std::isnan(ExactAuc(std::vector<float>{1, 2}, std::vector<float>{1, 1})));
  EXPECT_TRUE(std::isnan(ExactAuc(std::vector<float>{1, 2}, std::vector<float>{0, 0})));
  const float nan = std::numeric_limits<float>::quiet_NaN();
  EXPECT_TRUE(std::isnan(ExactAuc(std::vector<float>{1, nan}, std::vector<float>{0, 1})));
}

TEST(WhyNoAuc, SaysItExactlyWhereThereIsNone) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const std::vector<float> both = {0, 1};
  EXPECT_EQ(WhyNoAuc(std::vector<float>{0.5f, 0.25f}, both), "");
  EXPECT_EQ(WhyNoAuc({}, {}), "there is no example");
  EXPECT_EQ(WhyNoAuc(std::vector<float>(5000, 0.5f), std::vector<float>(5000, 0)),
            "all 5,000 labels are 0");
  EXPECT_EQ(WhyNoAuc(std::vector<float>{0.5f}, std::vector<float>{1}), "all 1 labels are 1");
  EXPECT_EQ(WhyNoAuc(std::vector<float>{0.5f, nan}, both), "1 of 2 scores are not numbers");
}

TEST(MeanLogloss, EqualsTheDefinition) {
  const std::vector<float> scores = {0.25f, 0.75f, 0.5f}, labels = {0, 1, 0};
  EXPECT_NEAR(MeanLogloss(scores, labels), -(std::log(0.75) + std::log(0.75) + std::log(0.5)) / 3,
              1e-15);
}

TEST(MeanLogloss, ACertainMistakeIsFinite) {
  const double worst = MeanLogloss(std::vector<float>{0, 1}, std::vector<float>{1, 0});
  EXPECT_NEAR(worst, -std::log(1e-7), 1e-6);
  EXPECT_NEAR(MeanLogloss(std::vector<float>{0, 1}, std::vector<float>{0, 1}), 0, 1e-6);
  EXPECT_TRUE(std::isnan(MeanLogloss({}, {})));
  const float nan = std::numeric_limits<float>::quiet_NaN();
  EXPECT_TRUE(std::isnan(MeanLogloss(std::vector<float>{nan}, std::vector<float>{1})));
}

}  // namespace
}  // namespace hdps
