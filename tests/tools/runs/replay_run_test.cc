// Tests that a recorded asynchronous run can be trained again, bit by bit.
#include "tools/replay/replay_run.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "common/job/job_file.h"
#include "common/job/job_spec.h"
#include "common/job/spec/train_spec.h"
#include "common/platform/random.h"
#include "scheduler/plan/resume.h"
#include "tests/tools/runs/small_job.h"

namespace hdps {
namespace {

using ::testing::HasSubstr;

class ReplayRunTest : public ::testing::Test {
 protected:
  ReplayRunTest() {
    Random random(1);
    std::string text;
    for (uint64_t i = 0; i < 1500; ++i) {
      const uint64_t c = random.Below(20), d = random.Below(5);
      text += std::string(random.Below(10) < (c % 2 == 0 ? 8 : 2) ? "1" : "0") + "," +
              std::to_string(random.Below(100)) + ",c" + std::to_string(c) + ",d" +
              std::to_string(d) + "\n";
    }
    std::unique_ptr<WritableFile> file = *files_->Create("train.csv");
    EXPECT_TRUE(file->Append(std::as_bytes(std::span(text))).ok());
    EXPECT_TRUE(file->Close().ok());
  }

  LocalClusterOptions Options(const std::string& out) {
    LocalClusterOptions options;
    Result<Job> job =
        ParseJob(SmallJob(R"("train": ["train.csv"], "eval": ["train.csv"])"), "job.json", sets_);
    EXPECT_TRUE(job.ok()) << job.status().message();
    options.job = std::make_shared<const Job>(*std::move(job));
    options.out = out;
    options.threads = 1;
    options.num_servers = 2;
    options.num_workers = 3;
    options.stop = &stop_;
    options.resume = resume_;
    return options;
  }
  // Trains and records a run, which stops after a step of worker 0 if `stop_after` says so.
  void Record(const std::string& name, Clock stop_after = 0) {
    LocalClusterOptions options = Options(name);
    options.record = name + "/record";
    options.after_step = [this, stop_after](WorkerId worker, const StepReport& report) {
      if (worker.value == 0 && stop_after > 0 && report.clock >= stop_after) stop_ = true;
    };
    const Result<ProcessEnd> end = RunLocalCluster(options, *files_, *clock_);
    ASSERT_TRUE(end.ok() && end->status == 0) << end.status().message();
    stop_ = false;
  }
  ReplayPlan Plan(const std::string& name, std::optional<Clock> until = std::nullopt) {
    uint64_t bytes = 0;
    const auto record = ReadRecord(*files_, name + "/record", &bytes);
    EXPECT_TRUE(record.ok()) << record.status().message();
    Result<ReplayPlan> plan = PlanReplay(*record, until);
    EXPECT_TRUE(plan.ok()) << plan.status().message();
    return *std::move(plan);
  }
  // Returns why the replay did not come out as the run.
  std::string Replayed(const ReplayPlan& plan, const std::string& out, int threads = 1) {
    LocalClusterOptions options = Options(out);
    options.threads = threads;
    const Result<ProcessEnd> end = Replay(plan, options, *files_, *clock_);
    if (!end.ok()) return end.status().message();
    if (end->status != 0) return end->reason;
    return CompareDigests(plan, *files_, out).status().message();
  }
  void Copy(const std::string& from, const std::string& to) {
    const Result<std::string> bytes = ReadWholeFile(*files_, from, 1u << 30);
    if (bytes.ok()) {
      ASSERT_TRUE(WriteFileAtomically(*files_, to, *bytes).ok());
      return;
    }
    ASSERT_TRUE(files_->MakeDirectories(to).ok());
    const std::vector<std::string> names = *files_->List(from);
    for (const std::string& name : names) {
      Copy(JoinPath(from, name), JoinPath(to, name));
    }
  }
  std::string Digest(const std::string& out) {
    const std::string text = *ReadWholeFile(*files_, out + "/summary.json", 1u << 20);
    return text.substr(text.find("\"digest\": ") + 11, 32);
  }

  std::unique_ptr<FileSystem> files_ = NewMemoryFileSystem();
  std::unique_ptr<MonotonicClock> clock_ = NewSystemClock();
  std::atomic<bool> stop_ = false;
  Resume resume_ = Resume::kAuto;
  int runs_ = 0;
  std::vector<std::string> sets_ = {"train.mode=async"};
};

TEST_F(ReplayRunTest, AnAsyncRunIsTrainedAgainWithAnyNumberOfThreads) {
  Record("run");
  const ReplayPlan plan = Plan("run");
  ASSERT_TRUE(plan.digest.has_value());
  EXPECT_TRUE(plan.whole);
  for (const int threads : {1, 2, 4}) {
    EXPECT_EQ(Replayed(plan, "again" + std::to_string(threads), threads), "");
  }
}

TEST_F(ReplayRunTest, SoAreOtherWaysToTrainAsynchronously) {
  for (const std::vector<std::string>& sets : std::vector<std::vector<std::string>>{
           {"train.mode=ssp", "train.staleness_bound=2"},
           {"train.mode=async", "train.lookahead=2"},
           {"train.mode=async", "train.evals_per_epoch=3"},
           {"train.mode=async", "train.lookahead=1", "parallel.dense_exchange=allreduce"},
           {"parallel.dense_exchange=allreduce", "train.mode=async"},
           {"train.mode=ssp", "train.staleness_bound=3", "train.lookahead=1"}}) {
    const std::string name = "run" + std::to_string(++runs_);
    SCOPED_TRACE(name + " " + sets.front() + " " + sets.back());
    sets_ = sets;
    sets_.push_back("cluster.request_timeout_s=20");  // A wait for a request in vain is half of it.
    Record(name);
    EXPECT_EQ(Replayed(Plan(name), name + "_again"), "");
  }
}

TEST_F(ReplayRunTest, ARunThatWasStoppedEndsThere) {
  for (const char* const lookahead : {"0", "2"}) {
    const std::string name = std::string("stopped") + lookahead;
    SCOPED_TRACE(name);
    sets_ = {"train.mode=async", std::string("train.lookahead=") + lookahead};
    Record(name, /*stop_after=*/7);
    const ReplayPlan plan = Plan(name);
    EXPECT_FALSE(plan.whole);
    EXPECT_LT(plan.segments.back().end, 48);
    EXPECT_EQ(Replayed(plan, name + "_again"), "");
  }
}

TEST_F(ReplayRunTest, ARunThatWasResumedBeginsFromItsCheckpoint) {
  Record("run", /*stop_after=*/7);
  Copy("run/checkpoint", "again/checkpoint");
  ASSERT_TRUE(files_->RemoveAll("run/record").ok());
  Record("run");
  const ReplayPlan plan = Plan("run");
  const Clock begin = plan.segments.front().begin;
  EXPECT_GE(begin, 7);
  EXPECT_THAT(CheckOut(plan, *files_, "empty").message(),
              HasSubstr("copy that checkpoint into empty/checkpoint"));
  EXPECT_TRUE(CheckOut(plan, *files_, "again").ok());
  EXPECT_EQ(Replayed(plan, "again"), "");
}

TEST_F(ReplayRunTest, OneThatWouldBeginWithTheRunsEndIsRefused) {
  Record("run", /*stop_after=*/7);
  ASSERT_TRUE(files_->RemoveAll("run/record").ok());
  Record("run");
  Copy("run/checkpoint", "again/checkpoint");
  const ReplayPlan plan = Plan("run");
  EXPECT_THAT(CheckOut(plan, *files_, "again").message(),
              HasSubstr("the newest one in again/checkpoint is that of step " +
                        std::to_string(plan.segments.back().end)));
  // The digest alone is equal, for nothing is trained.
  EXPECT_THAT(Replayed(plan, "again"), HasSubstr("have not come; give the settings of the run"));
}

TEST_F(ReplayRunTest, ARunThatWentOnWithChangedSettingsIsReplayedToo) {
  Record("run", /*stop_after=*/7);
  Copy("run/checkpoint", "again/checkpoint");
  ASSERT_TRUE(files_->RemoveAll("run/record").ok());
  sets_.emplace_back("train.lookahead=1");
  resume_ = Resume::kChanged;
  Record("run");
  resume_ = Resume::kAuto;
  EXPECT_EQ(Replayed(Plan("run"), "again"), "");
}

// The run's copies there would be compared with the checkpoints of the replay, and removed.
TEST_F(ReplayRunTest, AReplayCopiesNoCheckpoint) {
  Record("run");
  sets_.emplace_back("checkpoint.copy_to=nowhere:run");
  EXPECT_EQ(Replayed(Plan("run"), "again"), "");
}

TEST_F(ReplayRunTest, UntilAStepItIsTheSameEachTime) {
  Record("run");
  EXPECT_EQ(Replayed(Plan("run", 5), "five"), "");
  EXPECT_EQ(Replayed(Plan("run", 5), "five_again", 3), "");
  EXPECT_EQ(Digest("five"), Digest("five_again"));
  EXPECT_NE(Digest("five"), Digest("run"));
  EXPECT_TRUE(files_->Exists("five/checkpoint"));
}

TEST_F(ReplayRunTest, ASyncRunNeedsNoOrder) {
  sets_ = {};
  Record("run");
  EXPECT_EQ(Replayed(Plan("run"), "again"), "");
}

TEST_F(ReplayRunTest, ASwappedPairIsNoticed) {
  Record("run");
  ReplayPlan plan = Plan("run");
  // Puts a pull before a push that came before it, of another worker, without any of its own
  // between.
  std::vector<OrderEntry>& order = plan.segments[0].orders[0];
  std::optional<size_t> push;
  size_t pull = 0;
  for (; pull < order.size(); ++pull) {
    if (order[pull].kind == OrderKind::kPush) push = pull;
    if (!push || order[pull].kind != OrderKind::kTrainPull) continue;
    const auto own = [&](const OrderEntry& entry) { return entry.worker == order[pull].worker; };
    if (std::none_of(&order[*push], &order[pull], own)) break;
  }
  ASSERT_LT(pull, order.size());
  std::rotate(&order[*push], &order[pull], &order[pull] + 1);
  // The digest tells it, or a pull that cannot come before its worker has an answer of the other
  // server: which of the two depends on what was recorded.
  EXPECT_THAT(Replayed(plan, "again"), HasSubstr("is not that of the record"));
}

}  // namespace
}  // namespace hdps
