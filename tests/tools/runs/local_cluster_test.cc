// Tests a whole cluster on threads with files in memory: one digest, stopping, resuming, failing.
#include "tools/local_cluster.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdio>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "common/base/bounded_queue.h"
#include "common/base/thread_annotations.h"
#include "common/job/job_file.h"
#include "common/job/job_spec.h"
#include "common/platform/executor.h"
#include "common/platform/random.h"
#include "common/protocol/manifest.h"
#include "tests/tools/runs/small_job.h"
#include "tools/stepped_run.h"

namespace hdps {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

const std::string kJob = SmallJob(R"("train": ["train.csv"], "eval": ["eval.csv"])");

class LocalClusterTest : public ::testing::Test {
 protected:
  LocalClusterTest() {
    Write("train.csv", Rows(1000, 1));
    Write("eval.csv", Rows(300, 2));
  }

  static std::string Rows(uint64_t count, uint64_t seed) {
    Random random(seed);
    std::string text;
    for (uint64_t i = 0; i < count; ++i) {
      const uint64_t c = random.Below(20), d = random.Below(5);
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

  ProcessEnd Run(const std::string& out, uint32_t servers, uint32_t workers,
                 const std::vector<std::string>& overrides = {}) {
    LocalClusterOptions options;
    Result<Job> job = ParseJob(kJob, "job.json", overrides);
    EXPECT_TRUE(job.ok()) << job.status().message();
    options.job = std::make_shared<const Job>(*std::move(job));
    options.out = out;
    options.num_servers = servers;
    options.num_workers = workers;
    options.threads = threads_;
    options.stop = &stop_;
    options.end_now = &end_now_;
    options.after_step = after_step_;
    options.voice.notice = [this](const std::string& line) {
      if (stop_at_ == "" || line.find(stop_at_) == std::string::npos) return;
      ++notices_at_;
      stop_ = true;
      end_now_ = end_at_once_;
    };
    Result<ProcessEnd> exit = RunLocalCluster(options, *files_, *clock_);
    EXPECT_TRUE(exit.ok()) << exit.status().message();
    return exit.ok() ? *exit : ProcessEnd{-1, ""};
  }
  LocalClusterOptions Stepped(const std::string& out, uint32_t workers) {
    LocalClusterOptions options;
    options.job = std::make_shared<const Job>(*ParseJob(kJob, "job.json", {}));
    options.out = out;
    options.num_workers = workers;
    options.threads = threads_;
    return options;
  }
  // Returns the value of a field of summary.json as text.
  std::string Field(const std::string& out, const std::string& name) {
    const std::string text = *ReadWholeFile(*files_, out + "/summary.json", 1u << 20);
    const size_t begin = text.find("\"" + name + "\": ");
    if (begin == std::string::npos) return "";
    const size_t value = begin + name.size() + 4;
    return text.substr(value, text.find_first_of(",\n", value) - value);
  }

  std::unique_ptr<FileSystem> files_ = NewMemoryFileSystem();
  std::unique_ptr<MonotonicClock> clock_ = NewSystemClock();
  std::atomic<bool> stop_ = false, end_now_ = false;
  std::string stop_at_;              // A notice with this text stops the job,
  bool end_at_once_ = false;         // or ends it at once.
  std::atomic<int> notices_at_ = 0;  // Notices with that text.
  int threads_ = 2;
  std::function<void(WorkerId, const StepReport&)> after_step_;
};

TEST_F(LocalClusterTest, TheDigestDoesNotDependOnTheServers) {
  for (const uint32_t servers : {1, 3}) {
    const std::string out = "out" + std::to_string(servers);
    const ProcessEnd exit = Run(out, servers, 2);
    ASSERT_EQ(exit.status, 0) << exit.reason;
    EXPECT_EQ(Field(out, "steps"), "32");
    EXPECT_EQ(Field(out, "examples"), "2000");
    EXPECT_GT(std::stod(Field(out, "eval_auc")), 0.5);
    EXPECT_EQ(Field(out, "eval_auc"), Field("out1", "eval_auc"));
    EXPECT_EQ(Field(out, "digest"), Field("out1", "digest"));
  }
}

TEST_F(LocalClusterTest, StepsDrivenByHandEndWithTheSameParameters) {
  ASSERT_EQ(Run("whole", 1, 3).status, 0);
  SteppedRun run(Stepped("stepped", 3), *files_, *clock_);
  Clock steps = 0;
  while (const auto reports = run.Step()) {
    ++steps;
    ASSERT_EQ(reports->size(), 3u);
    for (const StepReport& report : *reports) EXPECT_EQ(report.clock, steps);
  }
  EXPECT_EQ(steps, 32);
  const Result<ProcessEnd> end = run.Finish();
  ASSERT_TRUE(end.ok() && end->status == 0) << end->reason;
  EXPECT_EQ(Field("stepped", "digest"), Field("whole", "digest"));
}

TEST_F(LocalClusterTest, ARunDrivenByHandHasRanksOnceItsGroupIsFormed) {
  for (const uint32_t workers : {1u, 3u}) {
    SteppedRun run(Stepped("ranks" + std::to_string(workers), workers), *files_, *clock_);
    EXPECT_THAT(run.group_size().status().message(), HasSubstr("in the first Step()"));
    EXPECT_THAT(run.rank({0}).status().message(), HasSubstr("in the first Step()"));
    const auto reports = run.Step();
    ASSERT_TRUE(reports.has_value());
    EXPECT_EQ(*run.group_size(), workers);
    std::vector<uint32_t> ranks;
    for (uint32_t w = 0; w < workers; ++w) {
      ranks.push_back(*run.rank({w}));
      EXPECT_EQ((*reports)[w].rank, ranks[w]);
      EXPECT_EQ((*reports)[w].group_size, workers);
    }
    std::ranges::sort(ranks);
    for (uint32_t w = 0; w < workers; ++w) EXPECT_EQ(ranks[w], w);
    EXPECT_THAT(run.rank({workers}).status().message(), HasSubstr("there is no worker"));
  }
}

TEST_F(LocalClusterTest, ARunDrivenByHandMayBeLetGoOrAbandoned) {
  ASSERT_EQ(Run("whole", 1, 2).status, 0);
  SteppedRun let_go(Stepped("let_go", 2), *files_, *clock_);
  for (int step = 0; step < 3; ++step) ASSERT_TRUE(let_go.Step().has_value());
  ASSERT_EQ(let_go.Finish()->status, 0);
  EXPECT_EQ(Field("let_go", "digest"), Field("whole", "digest"));
  {
    SteppedRun abandoned(Stepped("abandoned", 2), *files_, *clock_);
    for (int step = 0; step < 3; ++step) ASSERT_TRUE(abandoned.Step().has_value());
  }
  EXPECT_NE(Field("abandoned", "stopped_at"), "null");
  ASSERT_EQ(Run("abandoned", 1, 2).status, 0);
  EXPECT_EQ(Field("abandoned", "digest"), Field("whole", "digest"));
}

// Rounding to 16 bits depends on the seed only, not on servers, threads, or a stop between two
// steps.
TEST_F(LocalClusterTest, WeightsIn16BitsHaveOneDigestToo) {
  ASSERT_EQ(Run("fp32", 1, 2).status, 0);
  for (const std::string format : {"fp16", "bf16"}) {
    const std::string weights = "model.weights=" + format;
    for (const uint32_t servers : {1, 3}) {
      for (const int threads : {1, 2, 8}) {
        threads_ = threads;
        const std::string out = format + std::to_string(servers) + "_" + std::to_string(threads);
        const ProcessEnd exit = Run(out, servers, 2, {weights});
        ASSERT_EQ(exit.status, 0) << exit.reason;
        EXPECT_EQ(Field(out, "digest"), Field(format + "1_1", "digest")) << out;
        EXPECT_NE(Field(out, "digest"), Field("fp32", "digest")) << "rows are rounded";
        EXPECT_NEAR(std::stod(Field(out, "eval_auc")), std::stod(Field("fp32", "eval_auc")), 0.01);
      }
    }
    const std::vector<std::string> often = {weights, "checkpoint.every_steps=4", "train.epochs=4"};
    ASSERT_EQ(Run(format + "_whole", 2, 2, often).status, 0);
    stop_at_ = "saved ";
    ASSERT_EQ(Run(format + "_parts", 2, 2, often).status, 0);
    EXPECT_NE(Field(format + "_parts", "stopped_at"), "null");
    stop_at_ = "";
    stop_ = false;
    ASSERT_EQ(Run(format + "_parts", 3, 2, often).status, 0);
    EXPECT_NE(Field(format + "_parts", "resumed_from"), "null");
    EXPECT_EQ(Field(format + "_parts", "digest"), Field(format + "_whole", "digest"));
  }
}

TEST_F(LocalClusterTest, StoppedAndResumedItEndsAsIfNothingHadHappened) {
  const std::vector<std::string> often = {"checkpoint.every_steps=4", "train.epochs=4"};
  ASSERT_EQ(Run("whole", 2, 2, often).status, 0);
  stop_at_ = "saved ";
  const ProcessEnd stopped = Run("parts", 2, 2, often);
  ASSERT_EQ(stopped.status, 0) << stopped.reason;
  EXPECT_NE(Field("parts", "stopped_at"), "null");
  const Result<FoundCheckpoint> found = FindCheckpoint(*files_, "parts/checkpoint");
  ASSERT_TRUE(found.ok()) << found.status().message();
  EXPECT_LT(found->manifest.clock, 64);
  stop_at_ = "";
  stop_ = false;
  const ProcessEnd resumed = Run("parts", 1, 2, often);
  ASSERT_EQ(resumed.status, 0) << resumed.reason;
  EXPECT_EQ(Field("parts", "resumed_from"), std::to_string(found->manifest.clock));
  EXPECT_EQ(Field("parts", "digest"), Field("whole", "digest"));
}

TEST_F(LocalClusterTest, EndedAtOnceItSavesNothingMore) {
  stop_at_ = "saved ";
  end_at_once_ = true;
  const ProcessEnd end = Run("out", 1, 2, {"checkpoint.every_steps=3"});
  EXPECT_EQ(end.status, kExitFailed);
  EXPECT_THAT(end.reason, HasSubstr("told to end at once"));
  EXPECT_EQ(notices_at_, 1);
  EXPECT_FALSE(files_->Exists("out/summary.json"));
  stop_at_ = "";
  stop_ = end_now_ = false;
  ASSERT_EQ(Run("out", 1, 2).status, 0);
  EXPECT_EQ(Field("out", "resumed_from"), "3");
  ASSERT_EQ(Run("whole", 1, 2).status, 0);
  EXPECT_EQ(Field("out", "digest"), Field("whole", "digest"));
}

TEST_F(LocalClusterTest, ABadRowEndsTheJobWithItsPlace) {
  Write("train.csv", Rows(200, 1) + "1,many,c1,d1\n" + Rows(200, 3));
  const ProcessEnd exit = Run("out", 2, 2);
  EXPECT_EQ(exit.status, 2);
  EXPECT_THAT(exit.reason, AllOf(HasSubstr("worker"), HasSubstr("train.csv:201:3")));
  EXPECT_FALSE(files_->Exists("out/summary.json"));
}

TEST_F(LocalClusterTest, AllreduceGivesTheAnswerOfTheServers) {
  ASSERT_EQ(Run("servers", 2, 2).status, 0);
  const ProcessEnd exit = Run("allreduce", 2, 2, {"parallel.dense_exchange=allreduce"});
  ASSERT_EQ(exit.status, 0) << exit.reason;
  EXPECT_EQ(Field("allreduce", "eval_auc").substr(0, 7), Field("servers", "eval_auc").substr(0, 7));
}

// A caller may let the run go and listen, or hold every step until it wants it; both are the same
// run.
TEST_F(LocalClusterTest, TheCallerMayDriveTheSteps) {
  std::atomic<int> heard = 0;
  std::atomic<int64_t> examples = 0;
  after_step_ = [&](WorkerId, const StepReport& report) {
    ++heard;
    examples += static_cast<int64_t>(report.examples);
  };
  ASSERT_EQ(Run("listened", 1, 2).status, 0);
  EXPECT_EQ(heard, 2 * 32);
  EXPECT_EQ(examples, 2000);

  BoundedQueue<int> asked_for(1);
  BoundedQueue<StepReport> done(1);
  after_step_ = [&](WorkerId worker, const StepReport& report) {
    if (worker.value != 0) return;
    done.Push(report);
    asked_for.Pop();  // Worker 0 continues when the caller asks for the next step.
  };
  std::unique_ptr<Thread> run =
      StartThread("run", [&] { EXPECT_EQ(Run("driven", 1, 2).status, 0); });
  for (Clock step = 1; step <= 32; ++step) {
    const std::optional<StepReport> report = done.Pop();
    ASSERT_TRUE(report.has_value());
    EXPECT_EQ(report->clock, step);
    EXPECT_EQ(report->epoch, step <= 16 ? 0u : 1u);
    asked_for.Push(0);
  }
  run->Join();
  EXPECT_EQ(Field("driven", "digest"), Field("listened", "digest"));
}

// Compares N workers with one on the whole batch: the mean loss of each of 48 steps is the same to
// 1e-6.
TEST_F(LocalClusterTest, EveryStepsLossIsThatOfTheWholeBatch) {
  Mutex mutex;
  std::vector<double> losses[2];
  for (const uint32_t workers : {1, 3}) {
    std::vector<double>& sums = losses[workers > 1];
    std::vector<uint64_t> examples(48);
    sums.resize(48);
    after_step_ = [&](WorkerId, const StepReport& report) {
      MutexLock lock(mutex);
      sums[static_cast<size_t>(report.clock - 1)] += report.loss_sum;
      examples[static_cast<size_t>(report.clock - 1)] += report.examples;
    };
    ASSERT_EQ(Run("workers" + std::to_string(workers), 2, workers, {"train.epochs=3"}).status, 0);
    for (size_t step = 0; step < sums.size(); ++step) {
      sums[step] /= static_cast<double>(examples[step]);
    }
  }
  double largest = 0;
  for (size_t step = 0; step < 48; ++step) {
    largest = std::max(largest, std::abs(losses[0][step] - losses[1][step]));
  }
  std::printf("figure: largest difference of a step's loss, 3 workers against 1: %.3g\n", largest);
  EXPECT_LE(largest, 1e-6);
  EXPECT_NE(losses[0][0], losses[0][47]);
}

}  // namespace
}  // namespace hdps
