// Tests the proposals in messages about mistaken settings.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/base/nearest_name.h"
#include "common/job/spec/data_spec.h"
#include "common/job/spec/train_spec.h"
#include "tests/common/job/job_samples.h"

namespace hdps {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(JobHintsTest, WordsOfAListNeedNoQuotesOnTheCommandLine) {
  const std::string eval = "data.eval=[\"e.csv\"]";
  EXPECT_THAT(Good({eval, "train.metrics=[auc,logloss]"}).train.metrics,
              ElementsAre("auc", "logloss"));
  EXPECT_THAT(Good({eval, "train.metrics=[ auc, \"pr_auc\" ]"}).train.metrics,
              ElementsAre("auc", "pr_auc"));
  EXPECT_THAT(Good({"model.hidden=[8,4]"}).warnings, testing::IsEmpty());
  EXPECT_THAT(Good({"data.train=[a/b-1.csv,c.csv]"}).data.train, ElementsAre("a/b-1.csv", "c.csv"));
  // A pattern may begin like a list.
  EXPECT_THAT(Good({"data.train.0=[ab]*.csv"}).data.train, ElementsAre("[ab]*.csv"));
  EXPECT_THAT(Bad({"train.metrics=[auc,logloss"}), HasSubstr("train.metrics"));
}

TEST(JobHintsTest, NamesInAnotherOrderOrInCapitalsAreNear) {
  const std::vector<std::string> words = {"auc", "logloss", "pr_auc", "rmse"};
  EXPECT_EQ(NearestName("auc_pr", words), "pr_auc");
  EXPECT_EQ(NearestName("AUC", words), "auc");
  EXPECT_EQ(NearestName("Log_Loss", words), "logloss");
  EXPECT_EQ(NearestName("accuracy", words), "");
  EXPECT_EQ(DidYouMean("loss_l2", {"loss", "wide_loss_l2", "deep_loss_l2", "deep_loss_l1"}),
            "; did you mean \"wide_loss_l2\" or \"deep_loss_l2\"?");
  EXPECT_EQ(DidYouMean("ndcg", {"hr@10", "ndcg@10"}), "; did you mean \"ndcg@10\"?");
}

TEST(JobHintsTest, EachMistakeSaysWhatWasMeant) {
  const struct {
    std::vector<std::string> overrides;
    std::vector<std::string> needles;
  } mistakes[] = {
      {{"train.metrics=[\"auc_pr\"]"}, {"train.metrics.0", "did you mean \"pr_auc\"?"}},
      {{"train.metrics=[\"ndcg\"]"}, {"did you mean \"ndcg@10\"?"}},
      {{"model.loss_l2=0.1"},
       {"model.loss_l2", "did you mean", "\"deep_loss_l2\"", "\"wide_loss_l2\"",
        "\"dense_loss_l2\""}},
      {{"batch_size=64"}, {"there is no such key; there is train.batch_size"}},
      {{"epochs=3"}, {"there is train.epochs"}},
      {{"train.learning_rate=0.1"},
       {"there is model.wide_optimizer.learning_rate, model.deep_optimizer.learning_rate"}},
      {{"train.mode=SYNCH"}, {"did you mean \"sync\"?"}},
      {{"train.batch_size=\"64\""}, {"train.batch_size", "without the quotes, 64"}},
      {{"train.eval_each_epoch=True"}, {"true or false", "did you mean \"true\"?"}},
      {{"train.eval_each_epoch=\"false\""}, {"without the quotes, false"}},
      {{"name=7"}, {"name", "in quotes, \"7\""}},
      {{"data.missing=-1"}, {"data.missing", "in quotes, \"-1\""}},
      {{"data.train=a.csv"}, {"data.train", "a list of one is [\"a.csv\"]"}},
      {{"data.eval.0=e.csv"}, {"data.eval", "a list of one is [\"e.csv\"]"}},
      {{"model.hidden=64"}, {"model.hidden", "a list of one is [64]"}},
      {{"model.hidden=[\"64\"]"}, {"model.hidden", "without the quotes, 64"}},
      {{"data.columns.0.type=Labels"}, {"data.columns.0.type", "did you mean \"label\"?"}},
      {{"model.deep_optimizer.lr=0.1"}, {"did you mean \"learning_rate\"?"}},
      {{"checkpoint.every_step=5"}, {"did you mean \"every_steps\"?"}},
  };
  for (const auto& mistake : mistakes) {
    const std::string message = Bad(mistake.overrides);
    for (const std::string& needle : mistake.needles) EXPECT_THAT(message, HasSubstr(needle));
  }
}

}  // namespace
}  // namespace hdps
