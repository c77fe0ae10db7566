// Tests what the scheduler wants of table workers between their steps: ends, checkpoints,
// evaluations.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "common/job/spec/table_spec.h"
#include "common/telemetry/samples.h"
#include "scheduler/picture/job_picture.h"
#include "tests/worker/outside/table_job.h"

namespace hdps {
namespace {

using testing::Each;
using testing::HasSubstr;
using testing::IsEmpty;

// Makes `count` steps of 4 examples, each with the gradient 1/8 for `keys`.
void Steps(TableWorker& worker, int count, const std::vector<Key>& keys = {1, 2, 3}) {
  for (int i = 0; i < count; ++i) {
    const PulledRows pulled = PullOne(worker, kWords, keys);
    if (worker.standing() != Standing::kSteps) return;
    ASSERT_TRUE(worker.Push(pulled, std::vector<float>(pulled.rows.size(), 0.125f)).ok());
    const Status status = worker.Advance(4);
    ASSERT_TRUE(status.ok()) << status.message();
  }
}

class StepsTest : public TableJobTest {
 protected:
  // Returns options whose state says which worker it is of, and of which clock.
  std::vector<TableWorkerOptions> WithStates(std::vector<std::atomic<Clock>>& clocks) {
    std::vector<TableWorkerOptions> options(clocks.size());
    for (size_t w = 0; w < clocks.size(); ++w) {
      options[w].state = [w, &clocks]() -> Result<std::string> { return StateOf(w, clocks[w]); };
    }
    return options;
  }
  // Is longer than a chunk, and holds every byte.
  static std::string StateOf(size_t worker, Clock clock) {
    std::string state = "worker " + std::to_string(worker) + " at " + std::to_string(clock) + ":";
    for (int i = 0; i < 20'000; ++i) state.push_back(static_cast<char>(i * 7 + clock));
    return state;
  }
  bool HasCheckpoint(Clock clock) const {
    const Result<std::vector<std::string>> names = files_->List(JoinPath(out(), "checkpoint"));
    return names.ok() && std::ranges::any_of(*names, [&](const std::string& name) {
             return name.find(std::to_string(clock)) != std::string::npos;
           });
  }
};

TEST_F(StepsTest, EndWhenAllWorkersHaveFinishedWhoeverHasMore) {
  for (const char* mode : {"sync", "ssp"}) {
    SCOPED_TRACE(mode);
    Overrides overrides = {std::string("train.mode=") + mode};
    if (overrides[0] == "train.mode=ssp") overrides.push_back("train.staleness_bound=2");
    nlohmann::json first;
    for (int turn = 0; turn < 2; ++turn) {
      const nlohmann::json summary = Summary({3, 2}, overrides, [](TableWorker& worker) {
        const int steps[] = {3, 7, 5};
        Steps(worker, steps[worker.rank()]);
        EXPECT_TRUE(worker.Finish().ok());
        EXPECT_EQ(worker.standing(), Standing::kEnded);
        EXPECT_EQ(worker.clock(), 7);
      });
      EXPECT_EQ(summary["steps"], 7);
      EXPECT_EQ(summary["examples"], 15 * 4);
      if (turn == 0) first = summary;
      // Under ssp rows depend on who came first.
      if (overrides.size() > 1) continue;
      EXPECT_EQ(summary["digest"], first["digest"]);
    }
  }
}

TEST_F(StepsTest, InTwoRunsHaveTheDigestOfOne) {
  const auto digest = [&](std::initializer_list<int> parts) {
    nlohmann::json summary;
    Resume resume = Resume::kNever;
    for (const int steps : parts) {
      summary = Summary(
          {2, 2}, {}, [&](TableWorker& worker) { Steps(worker, steps); }, {}, resume);
      resume = Resume::kAuto;
    }
    return summary["digest"];
  };
  EXPECT_EQ(digest({7}), digest({4, 3}));
}

TEST_F(StepsTest, ThatEndAtACheckpointHaveTheDigestOfARunWithoutIt) {
  const auto digest = [&](const Overrides& overrides) {
    return Summary({2, 2}, overrides, [](TableWorker& worker) {
      Steps(worker, 4);
      EXPECT_TRUE(worker.Finish().ok());
    })["digest"];
  };
  EXPECT_EQ(digest({"checkpoint.every_steps=4"}), digest({}));
}

TEST_F(StepsTest, AWorkerWithoutAnyExampleFinishesToo) {
  const nlohmann::json summary = Summary({2, 1}, {"train.clip_norm=100"}, [](TableWorker& worker) {
    Steps(worker, worker.rank() == 0 ? 0 : 4);
    EXPECT_TRUE(worker.Finish().ok());
  });
  EXPECT_EQ(summary["steps"], 4);
}

TEST_F(StepsTest, EndTogetherWhateverIsSavedAfterOneHasFinished) {
  for (const char* mode : {"sync", "ssp"}) {
    SCOPED_TRACE(mode);
    Overrides overrides = {std::string("train.mode=") + mode, "checkpoint.every_steps=1"};
    if (overrides[0] == "train.mode=ssp") overrides.push_back("train.staleness_bound=2");
    const nlohmann::json summary = Summary({3, 2}, overrides, [](TableWorker& worker) {
      const int steps[] = {2, 9, 6};
      Steps(worker, steps[worker.rank()]);
      EXPECT_TRUE(worker.Finish().ok());
      EXPECT_EQ(worker.clock(), 9);
    });
    EXPECT_EQ(summary["steps"], 9);
    EXPECT_EQ(summary["examples"], 17 * 4);
  }
}

TEST_F(StepsTest, EachGradientCountsOnceInAsyncAndSsp) {
  // Sums of eighths are exact in any order: rows that begin at 0 end at -rate * the sum.
  for (const char* mode : {"async", "ssp"}) {
    SCOPED_TRACE(mode);
    Overrides overrides = {std::string("train.mode=") + mode};
    if (overrides[0] == "train.mode=ssp") overrides.push_back("train.staleness_bound=3");
    std::atomic<int> begun = 0;
    const nlohmann::json summary = Summary({4, 2}, overrides, [&](TableWorker& worker) {
      const std::vector<Key> keys = {1, 2, 3};
      if (worker.rank() == 0) {
        ASSERT_TRUE(worker.Store(kWords, keys, std::vector<float>(12, 0)).ok());
        begun = 1;
        begun.notify_all();
      }
      begun.wait(0);
      Steps(worker, 10 + 5 * static_cast<int>(worker.rank()), keys);
      EXPECT_TRUE(worker.Finish().ok());
    });
    EXPECT_EQ(summary["examples"], 4 * (10 + 15 + 20 + 25));
    Summary(
        {1, 1}, overrides,
        [](TableWorker& worker) {
          EXPECT_THAT(PullOne(worker, kWords, {1, 2, 3}, PullFor::kLook).rows,
                      Each(-0.5f * 0.125f * 70));
        },
        {}, Resume::kAuto);
  }
}

TEST_F(StepsTest, TheStateOfEachProgramComesBackWithTheRowsOfItsClock) {
  std::vector<std::atomic<Clock>> clocks(2);
  const auto body = [&](TableWorker& worker, int steps) {
    for (int i = 0; i < steps; ++i) {
      // The state is asked for inside Advance(), when the step counts.
      clocks[worker.rank()] = worker.clock() + 1;
      const std::vector<float> gradients(kWordsDim, 0.125f);
      ASSERT_TRUE(worker.Push(PullOne(worker, kWords, {1}), gradients).ok());
      if (!worker.Advance(4).ok()) return;
    }
  };
  const nlohmann::json summary = Summary(
      {2, 2}, {"train.max_steps=6", "checkpoint.every_steps=4"},
      [&](TableWorker& worker) {
        EXPECT_FALSE(worker.restored().has_value());
        body(worker, 6);
      },
      WithStates(clocks));
  EXPECT_EQ(clocks[0], 6);
  EXPECT_EQ(summary["rows"], 1) << "states are no rows";
  std::vector<std::atomic<Clock>> later(2);
  Summary(
      {2, 3}, {"train.max_steps=9"},
      [&](TableWorker& worker) {
        EXPECT_EQ(worker.clock(), 6);
        ASSERT_TRUE(worker.restored().has_value());
        EXPECT_TRUE(*worker.restored() == StateOf(worker.rank(), 6));
        MakeEmptySteps(worker);
      },
      WithStates(later), Resume::kAuto);
}

TEST_F(StepsTest, ACheckpointThatIsAskedForIsOfThisStepAndItsState) {
  const ProcessEnd end = Run({1, 1}, {"checkpoint.keep=9"}, [&](TableWorker& worker) {
    Steps(worker, 2);
    ASSERT_TRUE(worker.WantCheckpoint("of " + std::to_string(worker.rank())).ok());
    Steps(worker, 1);
    EXPECT_EQ(worker.clock(), 3);
    Steps(worker, 2);
  });
  EXPECT_EQ(end.status, 0) << end.reason;
  EXPECT_TRUE(HasCheckpoint(3));
  // The last checkpoint has another clock, and so no state: it was given for step 3 alone.
  Summary(
      {1, 1}, {},
      [](TableWorker& worker) {
        EXPECT_EQ(worker.clock(), 5);
        EXPECT_FALSE(worker.restored().has_value());
      },
      {}, Resume::kAuto);
}

TEST_F(StepsTest, WorkersThatAskAtOneStepGetTheCheckpointOfItsEnd) {
  constexpr Clock kAsked = 8;
  for (const char* mode : {"sync", "ssp", "async"}) {
    SCOPED_TRACE(mode);
    Overrides overrides = {std::string("train.mode=") + mode, "checkpoint.keep=100"};
    if (mode == std::string("ssp")) overrides.push_back("train.staleness_bound=2");
    const ProcessEnd end = Run({3, 2}, overrides, [&](TableWorker& worker) {
      for (Clock i = 1; i <= kAsked; ++i) {
        Steps(worker, 2);
        ASSERT_TRUE(worker.WantCheckpoint(StateOf(worker.rank(), 3 * i)).ok());
        Steps(worker, 1);
      }
    });
    EXPECT_EQ(end.status, 0) << end.reason;
    std::vector<std::string> expected;
    for (Clock i = 1; i <= kAsked; ++i) {
      expected.push_back("step_00000000" + std::string(3 * i < 10 ? "0" : "") +
                         std::to_string(3 * i));
    }
    EXPECT_THAT(*files_->List(JoinPath(out(), "checkpoint")), testing::IsSupersetOf(expected));
    Summary(
        {3, 2}, overrides,
        [](TableWorker& worker) {
          EXPECT_EQ(worker.clock(), 3 * kAsked);
          ASSERT_TRUE(worker.restored().has_value());
          EXPECT_TRUE(*worker.restored() == StateOf(worker.rank(), 3 * kAsked));
        },
        {}, Resume::kAuto);
  }
}

TEST_F(StepsTest, AStateThatFailsEndsItsWorkerBeforeAnythingIsSaved) {
  std::vector<TableWorkerOptions> options(1);
  options[0].state = []() -> Result<std::string> {
    return Status(Code::kInvalidArgument, "no state today");
  };
  const ProcessEnd end = Run(
      {1, 1}, {"train.max_steps=3"},
      [](TableWorker& worker) {
        Steps(worker, 2);
        PullOne(worker, kWords, {1});
        EXPECT_THAT(worker.Advance(1).message(), HasSubstr("no state today"));
        EXPECT_EQ(worker.standing(), Standing::kFailed);
      },
      std::move(options));
  EXPECT_EQ(end.status, 2);
  EXPECT_THAT(end.reason, HasSubstr("no state today"));
  EXPECT_FALSE(HasCheckpoint(3));
}

TEST_F(StepsTest, AnEvaluationIsDueAndHoldsTheNextStep) {
  const nlohmann::json summary =
      Summary({2, 1}, {"train.max_steps=8", "train.eval_every_steps=4"}, [](TableWorker& worker) {
        Steps(worker, 4);
        ASSERT_TRUE(worker.evaluation_due());
        EXPECT_THAT(worker.Advance(1).message(), HasSubstr("an evaluation is due at step 4"));
        PullOne(worker, kWords, {1, 99}, PullFor::kLook);
        ASSERT_TRUE(worker.Report({{"auc", worker.rank() == 0 ? 0.75 : 0.25}}).ok());
        EXPECT_FALSE(worker.evaluation_due());
        Steps(worker, 2);
        // The next one is due while the worker makes empty steps.
        int calls = 0;
        EXPECT_TRUE(worker
                        .Finish([&]() -> Result<OutsideFigures> {
                          ++calls;
                          return OutsideFigures{{"auc", 0.875}};
                        })
                        .ok());
        EXPECT_LE(calls, 1);
      });
  EXPECT_THAT(summary.dump(), HasSubstr("0.75"));
}

TEST_F(StepsTest, AJobThatFailsEndsAWorkerThatHasFinished) {
  Result<std::unique_ptr<LocalTables>> local = Start({2, 1}, {});
  ASSERT_TRUE(local.ok()) << local.status().message();
  const std::unique_ptr<Thread> finished = StartThread("program", [&] {
    TableWorker& worker = (*local)->worker(1).worker();
    Steps(worker, 1);
    EXPECT_FALSE(worker.Finish().ok());
    EXPECT_EQ(worker.standing(), Standing::kFailed);
    EXPECT_THAT(worker.reason(), HasSubstr("no more steps today"));
  });
  Steps((*local)->worker(0).worker(), 2);
  // These rows come when the other worker has pushed an empty step; now it waits for this one's.
  PullOne((*local)->worker(0).worker(), kWords, {1});
  (*local)->worker(0).Leave(Status(Code::kUnavailable, "no more steps today"));
}

TEST_F(StepsTest, AWaitMayBeGivenUp) {
  std::atomic<bool> give_up = false, ended = false;
  std::vector<TableWorkerOptions> options(2);
  options[0].give_up = [&] { return give_up.load(); };
  const ProcessEnd end = Run(
      {2, 1}, {},
      [&](TableWorker& worker) {
        if (worker.rank() == 1) return ended.wait(false);  // It never advances.
        Steps(worker, 1);
        give_up = true;
        const std::vector<Key> keys = {1};
        EXPECT_EQ(
            worker.Pull(std::vector<AskedKeys>{{kWords, keys}}, PullFor::kStep).status().code(),
            Code::kCancelled);
        EXPECT_EQ(worker.standing(), Standing::kFailed);
        EXPECT_THAT(worker.reason(), HasSubstr("given up a wait"));
        ended = true;
        ended.notify_all();
      },
      std::move(options));
  EXPECT_EQ(end.status, 3);
}

TEST_F(StepsTest, AreCountedAndToldWithTheLastHeartbeat) {
  for (const char* mode : {"sync", "async"}) {
    pictures_ = std::make_shared<Published<JobPicture>>();
    const auto summary = Summary({2, 1}, {std::string("train.mode=") + mode},
                                 [](TableWorker& worker) { Steps(worker, 5); });
    const std::shared_ptr<const JobPicture> last = pictures_->Get();
    ASSERT_NE(last, nullptr);
    Readings sum;
    const FigureLayout& layout = last->frame->workers;
    for (const MemberPicture& member : last->members) {
      if (member.worker) AddReadings(layout, *member.readings, &sum);
    }
    std::map<std::string_view, Sample> figures;
    for (Sample& sample : SamplesOf(layout, sum, last->frame->tables)) {
      figures.insert_or_assign(RecordOf(sample.figure).name, std::move(sample));
    }
    EXPECT_EQ(figures.at("hdps_worker_examples_total").value, 2 * 5 * 4) << mode;
    EXPECT_EQ(CountOf(figures.at("hdps_worker_step_seconds")), 2u * 5);
    EXPECT_EQ(CountOf(figures.at("hdps_worker_staleness_clocks")), 2u * 5);
    EXPECT_EQ(CountOf(figures.at("hdps_worker_pull_seconds")), 2u * 5);
    EXPECT_GE(CountOf(figures.at("hdps_worker_push_seconds")), 2u * 5);  // Also of empty steps.
    EXPECT_GT(figures.at("hdps_worker_traffic_bytes_total").value, 0);
  }
}

}  // namespace
}  // namespace hdps
