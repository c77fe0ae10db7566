// Fixture with the steps of a small file, read by a thread as in a job, and servers that answer at
// once.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common/job/job_file.h"
#include "common/job/job_spec.h"
#include "common/job/spec/cluster_spec.h"
#include "common/job/spec/parallel_spec.h"
#include "common/job/step_lists.h"
#include "common/platform/executor.h"
#include "common/platform/file_system.h"
#include "tests/worker/exchange/row_servers.h"
#include "worker/dense/dense_state.h"
#include "worker/step/step_window.h"

namespace hdps {

// Steps of 10 rows in file order. Row i has label i % 2, number i, and key "k(i % 7)".
class StepTest : public testing::Test {
 protected:
  static constexpr int kRowsOfStep = 10;

  explicit StepTest(const std::vector<std::string>& overrides = {})
      : job_(SmallJob(overrides)),
        files_(NewMemoryFileSystem()),
        clock_(NewSystemClock()),
        executor_(NewInlineExecutor()),
        servers_(2, job_.cluster.shards, *clock_) {
    Result<std::unique_ptr<Model>> model = NewModel(job_, *executor_);
    EXPECT_TRUE(model.ok()) << model.status().message();
    model_ = *std::move(model);
    dense_keys_ = DenseKeys(model_->tensors());
  }

  // Returns a window over the steps of a file with `rows` rows, followed by the lines `more`.
  StepWindow& Read(int rows, const std::string& more = "") {
    std::string text;
    for (int i = 0; i < rows; ++i) {
      text += std::to_string(i % 2) + "," + std::to_string(i) + ",k" + std::to_string(i % 7) + "\n";
    }
    EXPECT_TRUE(WriteFileAtomically(*files_, "train.csv", text + more).ok());
    PipelineOptions options;
    options.paths = {"train.csv"};
    options.reader.batch_size = kRowsOfStep;
    options.reader.shuffle = false;
    options.parts = {.slices = job_.parallel.interleave_num, .pieces = PiecesOfStep(job_)};
    options.plan.view = servers_.view();
    options.plan.dense_keys = dense_keys_;
    Result<std::unique_ptr<StepPipeline>> steps =
        StepPipeline::Start(job_, *files_, *clock_, options);
    EXPECT_TRUE(steps.ok()) << steps.status().message();
    window_.reset();
    steps_ = *std::move(steps);
    window_ = std::make_unique<StepWindow>(*steps_, job_, servers_.channel(), *clock_);
    return *window_;
  }

  static Job SmallJob(const std::vector<std::string>& overrides) {
    const auto job = ParseJob(R"({
      "data": {"format": "csv", "train": ["train.csv"],
               "columns": [{"name": "y", "type": "label"}, {"name": "x", "type": "numeric"},
                           {"name": "a"}]},
      "model": {"type": "wide_deep", "embedding_dim": 3, "hidden": [4]}
    })",
                              "test", overrides);
    EXPECT_TRUE(job.ok()) << job.status().message();
    return *job;
  }

  const Job job_;
  const std::unique_ptr<FileSystem> files_;
  const std::unique_ptr<MonotonicClock> clock_;
  const std::unique_ptr<Executor> executor_;
  RowServers servers_;
  std::unique_ptr<Model> model_;
  std::vector<Key> dense_keys_;
  std::unique_ptr<StepPipeline> steps_;
  std::unique_ptr<StepWindow> window_;
};

}  // namespace hdps
