// Tests the names of metrics, and their common aliases.
#include "common/metrics/metric_name.h"

#include <gtest/gtest.h>

#include "common/metrics/metric.h"

namespace hdps {
namespace {

TEST(MetricNameTest, WordsAreKnownOrNot) {
  for (const char* good : {"auc", "hr@1", "ndcg@100", "normalized_entropy"}) {
    EXPECT_TRUE(IsMetric(good)) << good;
  }
  for (const char* bad : {"", "AUC", "hr", "hr@", "hr@0", "hr@x", "hr@-1", "auc@3", "hr@1000000"}) {
    EXPECT_FALSE(IsMetric(bad)) << bad;
  }
  EXPECT_TRUE(HigherIsBetter("auc"));
  EXPECT_TRUE(HigherIsBetter("click.hr@3"));
  EXPECT_FALSE(HigherIsBetter("logloss"));
  EXPECT_FALSE(HigherIsBetter("buy.rmse"));
  EXPECT_TRUE(HigherIsBetter("recall_20")) << "a program's own figure";
  EXPECT_FALSE(HigherIsBetter("bce_loss"));
  EXPECT_FALSE(HigherIsBetter("squared_error_mean"));
  EXPECT_NE(WhyNoMetric("aux").find("did you mean \"auc\""), std::string::npos);
}

TEST(MetricNameTest, EveryMetricHasOneForPeople) {
  for (const auto kind : {ScoreKind::kProbability, ScoreKind::kNumber, ScoreKind::kClass}) {
    for (const std::string& word : DefaultMetrics(kind, false)) EXPECT_NE(MetricName(word), word);
  }
  EXPECT_EQ(MetricName("pr_auc"), "PR AUC");
  EXPECT_EQ(MetricName("click.logloss"), "click: log loss");
  EXPECT_EQ(MetricName("buy.now.hr@10"), "buy.now: hit rate@10");
  EXPECT_EQ(MetricName("train_loss"), "train_loss") << "no metric keeps its word";
}

}  // namespace
}  // namespace hdps
