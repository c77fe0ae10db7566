// Tests in which settings two jobs differ, and which of these a job may change between runs.
#include "common/job/job_differences.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/common/job/job_samples.h"

namespace hdps {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// Returns "train.batch_size: 64, 32", with "!" in front if the setting may not change.
std::vector<std::string> Differences(const std::vector<std::string>& here,
                                     const std::vector<std::string>& there,
                                     JobPart part = JobPart::kWhole) {
  const auto found = DifferencesFrom(Good(here), PrintJob(Good(there)), part);
  EXPECT_TRUE(found.ok()) << found.status().message();
  std::vector<std::string> told;
  for (const SettingDifference& one : *found) {
    told.push_back((one.may_change ? "" : "!") + one.Place() + ": " + one.here + ", " + one.there);
  }
  return told;
}

TEST(JobDifferencesTest, NameThePathAndBothValues) {
  EXPECT_THAT(Differences({"train.batch_size=64", "seed=2"}, {"train.batch_size=32"}),
              ElementsAre("!seed: 2, 1", "train.batch_size: 64, 32"));
  EXPECT_THAT(Differences({"train.mode=async"}, {}), ElementsAre("train.mode: async, sync"));
  EXPECT_THAT(Differences({"cluster.shards=64"}, {}), ElementsAre("!cluster.shards: 64, 32"));
  EXPECT_THAT(Differences({"data.missing=?"}, {}), ElementsAre("!data.missing: ?, \"\""));
  EXPECT_THAT(Differences({"model.hidden=[32,16]"}, {"model.hidden=[32,8]"}),
              ElementsAre("!model.layers.8.units (deep2): 16, 8"));
}

TEST(JobDifferencesTest, AValueThatIsNotPrintedIsItsDefault) {
  EXPECT_THAT(Differences({"train.clip_norm=0.5"}, {}), ElementsAre("train.clip_norm: 0.5, 0"));
  EXPECT_THAT(Differences({}, {"train.clip_norm=0.5"}), ElementsAre("train.clip_norm: 0, 0.5"));
  EXPECT_THAT(Differences({R"(model.deep_schedule={"kind":"cosine","decay_steps":9})"}, {}),
              ElementsAre("model.tables.1.schedule.kind (deep): cosine, constant"));
  EXPECT_THAT(Differences({"parallel.device_num=2"}, {}),
              ElementsAre("parallel.device_num: 2, not given"));
}

TEST(JobDifferencesTest, OfAnotherOptimizerTheKindIsTold) {
  EXPECT_THAT(Differences({"model.deep_optimizer.kind=adagrad"}, {}),
              testing::Contains("!model.tables.1.optimizer.kind (deep): adagrad, lazy_adam"));
  EXPECT_THAT(Differences({"model.deep_optimizer.learning_rate=0.5"}, {}),
              ElementsAre("model.tables.1.optimizer.learning_rate (deep): 0.5, 0.001"));
}

TEST(JobDifferencesTest, WhatIsNotCountedDiffersNowhere) {
  EXPECT_THAT(Differences({"name=other", "train.epochs=9", "checkpoint.keep=3", "model.device=cpu",
                           "cluster.heartbeat_ms=100", "data.train=[\"b.csv\"]"},
                          {}),
              IsEmpty());
  EXPECT_THAT(Differences({"train.batch_size=64"}, {}, JobPart::kTables), IsEmpty());
  EXPECT_THAT(Differences({"model.embedding_dim=8", "train.batch_size=64"}, {}, JobPart::kTables),
              ElementsAre("!model.tables.1.dim (deep): 8, 16"));
}

// Both functions agree: there are no differences exactly if the digests are equal.
TEST(JobDifferencesTest, AreNoneExactlyWhereTheDigestsAreEqual) {
  const std::vector<std::string> jobs[] = {{},
                                           {"train.batch_size=64"},
                                           {"train.lookahead=3"},
                                           {"train.mode=async", "train.lookahead=3"},
                                           {"train.mode=async"},
                                           {"model.policy.admit_after=2"},
                                           {"data.columns.4.type=multi"},
                                           {"model.type=mlp"},
                                           {"train.epochs=7"},
                                           {"parallel.wire=fp16"},
                                           {"data.validation_share=0.25"},
                                           {"model.dropout=0.5"},
                                           {kGraph}};
  int equal = 0;
  for (const auto& here : jobs) {
    for (const auto& there : jobs) {
      const Job a = Good(here), b = Good(there);
      for (const JobPart part : {JobPart::kWhole, JobPart::kTables}) {
        const bool same = part == JobPart::kWhole ? JobDigest(a) == JobDigest(b)
                                                  : TablesDigest(a) == TablesDigest(b);
        const auto found = DifferencesFrom(a, PrintJob(b), part);
        ASSERT_TRUE(found.ok());
        EXPECT_EQ(found->empty(), same)
            << testing::PrintToString(here) << " and " << testing::PrintToString(there);
        equal += same ? 1 : 0;
      }
    }
  }
  EXPECT_GT(equal, 50);
}

TEST(JobDifferencesTest, AreToldByThreeAndCounted) {
  const auto found = DifferencesFrom(Good({"seed=2", "train.batch_size=64", "train.mode=async",
                                           "train.micro_batches=2", "parallel.wire=fp16"}),
                                     PrintJob(Good({})), JobPart::kWhole);
  ASSERT_TRUE(found.ok());
  EXPECT_EQ(TellDifferences(*found),
            "seed is 2, the checkpoint's is 1; train.mode is async, the checkpoint's is sync; "
            "train.batch_size is 64, the checkpoint's is 1024; and 2 more");
  EXPECT_EQ(DifferencesFrom(Good({}), "{}", JobPart::kWhole).status().code(),
            Code::kInvalidArgument);
}

TEST(JobDifferencesTest, TablesFitWhereWhatDiffersMayChange) {
  const Job job = Good({});
  const auto fits = [&job](const std::vector<std::string>& overrides) {
    const Job other = Good(overrides);
    return TablesFit(job, PrintJob(other), TablesDigest(other));
  };
  EXPECT_TRUE(fits({}));
  EXPECT_TRUE(fits({"model.deep_optimizer.learning_rate=0.5", "model.deep_loss_l2=0.25",
                    R"(train.schedule={"kind":"step","decay_steps":5})"}));
  for (const char* other :
       {"model.embedding_dim=8", "seed=2", "cluster.shards=64", "model.deep_optimizer.kind=adam",
        "model.weights=bf16", "model.policy.admit_after=2", "model.embedding_init.scale=0.5"}) {
    EXPECT_FALSE(fits({other})) << other;
  }
  EXPECT_FALSE(TablesFit(job, "no job", 1));
}

}  // namespace
}  // namespace hdps
