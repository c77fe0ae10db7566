// Tests the batches that a program with a model of its own gets of a job's data.
#include "worker/step/job_data.h"

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/job/job_file.h"
#include "common/job/spec/data_spec.h"
#include "common/platform/file_system.h"
#include "common/platform/monotonic_clock.h"
#include "worker/step/step_pipeline.h"

namespace hdps {
namespace {

// Row i of 95 has the number i; the last step of 10 rows is short.
class JobDataTest : public testing::Test {
 protected:
  explicit JobDataTest(const std::vector<std::string>& overrides = {})
      : files_(NewMemoryFileSystem()), clock_(NewSystemClock()) {
    Result<Job> job = ParseJob(R"({
      "data": {"format": "csv", "train": ["train.csv"], "eval": ["eval.csv"], "shuffle_rows": 30,
               "columns": [{"name": "y", "type": "label"}, {"name": "x", "type": "numeric"},
                           {"name": "a"}]},
      "model": {"type": "wide_deep", "embedding_dim": 3, "hidden": [4]},
      "train": {"batch_size": 10}
    })",
                               "test", overrides);
    EXPECT_TRUE(job.ok()) << job.status().message();
    job_ = *job;
    Write("train.csv", 95);
    Write("eval.csv", 3);
  }

  void Write(const std::string& path, int rows, const std::string& more = "") {
    std::string text;
    for (int i = 0; i < rows; ++i) {
      text += std::to_string(i % 2) + "," + std::to_string(i) + ",k" + std::to_string(i % 7) + "\n";
    }
    EXPECT_TRUE(WriteFileAtomically(*files_, path, text + more).ok());
  }

  // Returns the numbers of each batch; the end's status in `*end`.
  static std::vector<std::vector<float>> NumbersOf(BatchStream& stream, Status* end = nullptr) {
    std::vector<std::vector<float>> numbers;
    while (true) {
      Result<std::optional<ReadBatch>> read = stream.Next();
      if (end != nullptr) *end = read.status();
      if (!read.ok() || !read->has_value()) return numbers;
      numbers.push_back((*read)->batch.numeric);
    }
  }

  Job job_;
  const std::unique_ptr<FileSystem> files_;
  const std::unique_ptr<MonotonicClock> clock_;
};

TEST_F(JobDataTest, BatchesAreThoseOfTheWorkersSteps) {
  JobData data(job_, *files_, *clock_, nullptr);
  for (uint32_t rank = 0; rank < 3; ++rank) {
    PipelineOptions options = TrainingOptions(job_, rank, 3);
    options.epoch = 2;
    const auto steps = StepPipeline::Start(job_, *files_, *clock_, options);
    ASSERT_TRUE(steps.ok());
    const auto stream = data.Read({.set = kTrainedName, .rank = rank, .workers = 3, .epoch = 2});
    ASSERT_TRUE(stream.ok()) << stream.status().message();
    const std::vector<std::vector<float>> numbers = NumbersOf(**stream);
    EXPECT_EQ(numbers.size(), 10u);
    for (const std::vector<float>& of_batch : numbers) {
      const Result<std::unique_ptr<PreparedStep>> step = (*steps)->Next();
      ASSERT_TRUE(step.ok() && *step != nullptr);
      EXPECT_EQ((*step)->parts.parts()[0].batch.numeric, of_batch);
    }
  }
}

TEST_F(JobDataTest, ABadRowEndsTheStreamBehindTheBatchesBeforeIt) {
  job_.data.shuffle_rows = 0;
  Write("train.csv", 2000, "1,none,k\n");  // Beyond the rows that are looked at first.
  JobData data(job_, *files_, *clock_, nullptr);
  const auto stream = data.Read({});
  ASSERT_TRUE(stream.ok()) << stream.status().message();
  Status end;
  EXPECT_EQ(NumbersOf(**stream, &end).size(), 200u);
  EXPECT_EQ(end.code(), Code::kInvalidArgument);
  EXPECT_NE(end.message().find("train.csv:2001:3: 'none'"), std::string::npos) << end.message();
  const auto next = (*stream)->Next();
  EXPECT_TRUE(next.ok() && !next->has_value());
}

TEST_F(JobDataTest, AStreamThatIsClosedGivesWhatWaits) {
  Write("train.csv", 5000);
  JobData data(job_, *files_, *clock_, nullptr);
  const auto stream = data.Read({});
  ASSERT_TRUE(stream.ok());
  ASSERT_TRUE((*stream)->Next()->has_value());
  (*stream)->Close();
  EXPECT_LE(NumbersOf(**stream).size(), 4u);
}

TEST_F(JobDataTest, WhatIsNotThereIsRefusedByName) {
  JobData data(job_, *files_, *clock_, nullptr);
  const auto refused = [&data](const DataPart& part) { return data.Read(part).status().message(); };
  EXPECT_EQ(refused({.set = "tuesday"}),
            "this job has no rows named 'tuesday'; it may have train, eval");
  EXPECT_NE(refused({.rank = 2, .workers = 2}).find("part=(2, 2): expected"), std::string::npos);
  EXPECT_NE(refused({.skip_steps = uint64_t{1} << 60}).find("skip_steps=1152921504606846976"),
            std::string::npos);
  ASSERT_TRUE(files_->RemoveAll("eval.csv").ok());
  EXPECT_NE(refused({.set = "eval"}).find("data file 'eval.csv' does not exist"),
            std::string::npos);
}

}  // namespace
}  // namespace hdps
