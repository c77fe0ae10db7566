// Tests figures of logits so large that their probabilities as floats are 0 and 1.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "common/metrics/score_book.h"

namespace hdps {
namespace {

// Returns AUC and logloss of logits with labels.
std::vector<Figure> Tell(const std::vector<float>& logits, const std::vector<float>& labels) {
  const auto files = NewMemoryFileSystem();
  ScoreBook book(*files, "scores", {{"", ScoreKind::kProbability, {"auc", "logloss"}}});
  EXPECT_TRUE(book.Add(logits, labels, {}, {}).ok());
  return book.Finish(0)->figures;
}

TEST(LogitsTest, TheyAreNotCut) {
  const auto told = Tell({40, 30, 20, -2e30f}, {1, 0, 1, 0});
  EXPECT_DOUBLE_EQ(told[0].value, 0.75);
  EXPECT_DOUBLE_EQ(told[1].value, (std::log1p(std::exp(-40.0)) + 30 + std::log1p(std::exp(-30.0)) +
                                   std::log1p(std::exp(-20.0))) /
                                      4);
  EXPECT_NEAR(Tell({0, -2e30f}, {0, 1})[1].value / 1e30, 1, 1e-7);
}

TEST(LogitsTest, AnInfiniteOneIsNamed) {
  const auto told = Tell({std::numeric_limits<float>::infinity(), 1}, {0, 1});
  EXPECT_EQ(told[0].value, 0);
  EXPECT_TRUE(std::isinf(told[1].value));
  EXPECT_EQ(told[1].about, "a score is infinite");
}

}  // namespace
}  // namespace hdps
