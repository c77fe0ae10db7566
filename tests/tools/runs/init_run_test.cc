// Tests jobs that begin with rows and dense weights of another job's checkpoint.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "common/job/job_file.h"
#include "common/job/job_spec.h"
#include "common/platform/random.h"
#include "common/protocol/manifest.h"
#include "tests/tools/runs/small_job.h"
#include "tools/local_cluster.h"

namespace hdps {
namespace {

using ::testing::HasSubstr;
using Sets = std::vector<std::string>;

const std::string kJob = SmallJob(R"("train": ["train.csv"], "eval": ["eval.csv"])");

// Rules whose updates do not depend on the step, so that a job which begins where another ended
// goes on as that one would have. Each epoch reads the rows in one order.
const Sets kEven = {"data.shuffle_rows=0", "model.deep_optimizer.kind=adagrad",
                    "model.wide_optimizer.kind=ftrl", "model.dense_optimizer.kind=adagrad"};

Sets With(const Sets& more, const Sets& base = kEven) {
  Sets all = base;
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

class InitRunTest : public ::testing::Test {
 protected:
  InitRunTest() {
    Write("train.csv", Rows(600, 1));
    Write("eval.csv", Rows(100, 2));
  }

  static std::string Rows(uint64_t count, uint64_t seed) {
    Random random(seed);
    std::string text;
    for (uint64_t i = 0; i < count; ++i) {
      const uint64_t c = random.Below(200), d = random.Below(5);
      const bool label = random.Below(10) < (c % 2 == 0 ? 8 : 2);
      text += std::string(label ? "1" : "0") + "," + std::to_string(random.Below(100)) + ",c" +
              std::to_string(c) + ",d" + std::to_string(d) + "\n";
    }
    return text;
  }
  void Write(const std::string& path, const std::string& text) {
    std::unique_ptr<WritableFile> file = *files_->Create(path);
    ASSERT_TRUE(file->Append(std::as_bytes(std::span(text))).ok());
    ASSERT_TRUE(file->Close().ok());
  }

  // Runs a job for one epoch, if `sets` do not say otherwise.
  Result<ProcessEnd> TryRun(const std::string& out, const Sets& sets, const std::string& init,
                            uint32_t servers) {
    LocalClusterOptions options;
    Result<Job> job = ParseJob(kJob, "job.json", With(sets, {"train.epochs=1"}));
    EXPECT_TRUE(job.ok()) << job.status().message();
    options.job = std::make_shared<const Job>(*std::move(job));
    options.out = out;
    options.init = init;
    options.num_servers = servers;
    options.num_workers = 2;
    options.threads = 2;
    said_.clear();
    options.voice.notice = [this](const std::string& line) { said_ += line + "\n"; };
    return RunLocalCluster(options, *files_, *clock_);
  }
  // Returns the digest of the run.
  std::string Run(const std::string& out, const Sets& sets, const std::string& init = "",
                  uint32_t servers = 1) {
    const Result<ProcessEnd> end = TryRun(out, sets, init, servers);
    EXPECT_TRUE(end.ok()) << end.status().message();
    if (!end.ok()) return "";
    EXPECT_EQ(end->status, 0) << end->reason;
    const std::string text = *ReadWholeFile(*files_, out + "/summary.json", 1u << 20);
    const size_t begin = text.find("\"digest\": \"");
    return text.substr(begin, text.find('\n', begin) - begin);
  }

  std::unique_ptr<FileSystem> files_ = NewMemoryFileSystem();
  std::unique_ptr<MonotonicClock> clock_ = NewSystemClock();
  std::string said_;  // Notices of the last run.
};

// Rows, dense weights and their state are those of the job before, whatever either job's servers,
// shards and cuts.
TEST_F(InitRunTest, AJobGoesOnWhereAnotherEnded) {
  const std::string whole = Run("whole", With({"train.epochs=2"}));
  Run("first", kEven, "", 2);
  EXPECT_NE(Run("alone", kEven), whole);
  const std::vector<std::pair<std::string, Sets>> others = {
      {"as_it_was", {}},
      {"more_shards", {"cluster.shards=128"}},
      {"apart", {"cluster.join_tables=false"}},
      {"replicas", {"cluster.replicas=1"}},
      {"by_range", {"model.slice_mode=table_row_slice"}},
      {"allreduce", {"parallel.dense_exchange=allreduce"}}};
  for (const auto& [name, sets] : others) {
    const bool sums_elsewhere = name == "allreduce";
    const std::string expected =
        sums_elsewhere ? Run("whole_" + name, With({"train.epochs=2", sets[0]})) : whole;
    if (sums_elsewhere) Run("first_" + name, With(sets), "", 2);
    const std::string first = sums_elsewhere ? "first_" + name : "first";
    EXPECT_EQ(Run(name, With(sets), first, 3), expected) << name;
    EXPECT_THAT(said_, HasSubstr("step 10 of the job")) << name;
    EXPECT_THAT(said_, HasSubstr("taken with its state of ftrl")) << name;
  }
}

// A checkpoint that ends in deltas is taken as one that holds all rows itself.
TEST_F(InitRunTest, DeltasAreAsGoodAsAWholeCheckpoint) {
  Run("whole", With({"checkpoint.every_steps=9"}));
  Run("deltas", With({"checkpoint.every_steps=6", "checkpoint.delta_every_steps=1"}), "", 2);
  const std::string at_nine = "/checkpoint/step_0000000009";
  ASSERT_TRUE(ReadManifest(*files_, "deltas" + at_nine)->is_delta());
  EXPECT_EQ(Run("of_deltas", kEven, "deltas" + at_nine, 2),
            Run("of_whole", kEven, "whole" + at_nine, 1));
}

// Jobs whose rows have another format than those they begin with are the same for any servers.
TEST_F(InitRunTest, FormatsAndTiersOfTheNewJobCount) {
  Run("first", kEven, "", 2);
  for (const Sets& sets :
       std::vector<Sets>{{"model.weights=bf16"},
                         {"model.weights=fp16", "cluster.join_tables=false"},
                         {"model.slice_mode=table_column_slice", "model.type=dcn_v2"}}) {
    const std::string one = Run(sets[0] + "1", With(sets), "first", 1);
    EXPECT_EQ(Run(sets[0] + "3", With(sets), "first", 3), one) << sets[0];
    EXPECT_NE(Run(sets[0] + "alone", With(sets)), one) << sets[0];
  }
}

// What does not fit begins anew: the rest is taken all the same.
TEST_F(InitRunTest, WhatDoesNotFitBeginsAnewAndIsTold) {
  Run("first", kEven);
  const Sets wider = With({"model.embedding_dim=8", "model.wide_optimizer.kind=sgd"});
  const std::string taken = Run("wider", wider, "first");
  EXPECT_THAT(said_, HasSubstr("begins anew: another dim"));
  EXPECT_THAT(said_, HasSubstr("taken; state begins anew: sgd here, ftrl there"));
  EXPECT_THAT(said_, HasSubstr("begins anew: another shape"));
  EXPECT_NE(taken, Run("wider_alone", wider));
  EXPECT_EQ(taken, Run("wider_again", wider, "first", 3));
}

TEST_F(InitRunTest, ACheckpointOfWhichNothingFitsIsRefused) {
  Run("first", kEven);
  const Sets other = {R"(model={"type": "graph", "device": "cpu", "tables": [{"name": "t"}],)"
                      R"( "layers": [{"name": "e", "kind": "embedding", "table": "t"},)"
                      R"( {"name": "top", "inputs": ["e"], "units": 1}]})"};
  const Result<ProcessEnd> end = TryRun("second", other, "first", 1);
  ASSERT_FALSE(end.ok());
  EXPECT_EQ(end.status().code(), Code::kInvalidArgument);
  EXPECT_THAT(end.status().message(), HasSubstr("--init=first: nothing of it fits this job"));
  const Result<ProcessEnd> nowhere = TryRun("third", kEven, "nowhere", 1);
  ASSERT_FALSE(nowhere.ok());
  EXPECT_EQ(nowhere.status().code(), Code::kInvalidArgument);
  EXPECT_THAT(nowhere.status().message(), HasSubstr("--init=nowhere: "));
}

TEST_F(InitRunTest, ARunWithACheckpointGoesOnFromIt) {
  Run("first", kEven);
  const std::string second = Run("second", kEven, "first");
  EXPECT_EQ(Run("second", kEven, "first"), second);
  EXPECT_THAT(said_, HasSubstr("--init=first is ignored: the run in second has a checkpoint"));
}

}  // namespace
}  // namespace hdps
