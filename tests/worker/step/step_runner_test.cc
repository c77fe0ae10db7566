// Tests one worker's steps: the order of requests, and what may stop them.
#include "worker/step/step_runner.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "common/base/square_sum.h"
#include "common/job/spec/table_spec.h"
#include "embedding/memory/update_terms.h"
#include "tests/worker/step/step_fixture.h"
#include "worker/collective/rank_transport.h"
#include "worker/exchange/push_plan.h"
#include "worker/step/step_compute.h"

namespace hdps {
namespace {

using testing::ElementsAre;

constexpr Clock kMany = 100;

class StepRunnerTest : public StepTest {
 protected:
  explicit StepRunnerTest(const std::vector<std::string>& overrides = {})
      : StepTest(overrides), runner_(job_, *model_, servers_.channel(), *clock_, *executor_) {
    // Rows that identify their keys; dense weights as at the start of a job.
    const std::vector<float> dense = model_->InitialDense(1);
    for (size_t c = 0; c < dense_keys_.size(); ++c) {
      const auto chunk = dense.begin() + static_cast<ptrdiff_t>(c * DenseDim());
      servers_.rows[{DenseTable(), dense_keys_[c]}].assign(chunk, chunk + DenseDim());
    }
  }
  uint32_t DenseTable() const { return static_cast<uint32_t>(job_.tables.size() - 1); }
  uint32_t DenseDim() const { return job_.tables.back().dim; }

  // Gives the keys of the current step their own rows.
  void SetRows(const StepParts& parts) {
    for (uint32_t t = 0; t < DenseTable(); ++t) {
      float value = 0.1f;
      for (const Key key : parts.KeysOf({t})) {
        servers_.rows[{t, key}].assign(job_.tables[t].dim, value += 0.01f);
      }
    }
  }

  Result<StepOutcome> Run(StepWindow& window, Clock clock, Clock until = kMany,
                          bool pause = false) {
    EXPECT_TRUE(window.Fill(2, 2).ok());
    Result<StepOutcome> outcome =
        runner_.Run(window, {.clock = clock, .until = until, .pause = pause});
    window.Pop();
    return outcome;
  }

  StepRunner runner_;
};

TEST_F(StepRunnerTest, APullFollowsThePushBeforeItAndNothingIsAskedBehindTheEnd) {
  StepWindow& window = Read(50);
  for (Clock clock = 0; clock < 3; ++clock) {
    const Result<StepOutcome> outcome = Run(window, clock, /*until=*/3);
    ASSERT_TRUE(outcome.ok()) << outcome.status().message();
    EXPECT_EQ(outcome->examples, 10u);
  }
  ASSERT_TRUE(runner_.Settle().ok());
  EXPECT_THAT(servers_.log(), ElementsAre("pull 0", "push 0", "advance 1", "pull 1", "push 1",
                                          "advance 2", "pull 2", "push 2", "advance 3"));
}

// Loss and gradients are the model's for the rows that arrived, each key with its own.
TEST_F(StepRunnerTest, PushesTheGradientsOfTheRowsThatCame) {
  StepWindow& window = Read(10);
  ASSERT_TRUE(window.Fill(1, 1).ok());
  const StepParts& parts = window.at(0).prepared->parts;
  SetRows(parts);
  const std::unique_ptr<Model> plain = *NewModel(job_, *executor_);
  plain->SetDense(model_->InitialDense(1));
  std::vector<TableInput> inputs(job_.tables.size());
  std::vector<std::vector<float>> rows(job_.tables.size());
  for (uint32_t t = 0; t < DenseTable(); ++t) {
    for (const Key key : parts.KeysOf({t})) {
      const std::vector<float>& row = servers_.rows[{t, key}];
      rows[t].insert(rows[t].end(), row.begin(), row.end());
    }
    inputs[t].keys = parts.SetOf(0, {t});
    inputs[t].rows = RowSpans<const float>(rows[t]);
  }
  StepResult expected;
  std::vector<float> dense(model_->dense_floats());
  plain->Step(parts.parts()[0].batch, inputs, &expected, dense);

  const Result<StepOutcome> outcome = runner_.Run(window, {.clock = 0, .until = 1});
  ASSERT_TRUE(outcome.ok()) << outcome.status().message();
  EXPECT_EQ(outcome->loss_sum, expected.loss_sum);
  for (uint32_t t = 0; t < DenseTable(); ++t) {
    const uint32_t dim = job_.tables[t].dim;
    const std::span<const Key> keys = parts.KeysOf({t});
    for (size_t i = 0; i < keys.size(); ++i) {
      const auto from = expected.row_gradients[t].begin() + static_cast<ptrdiff_t>(i * dim);
      EXPECT_EQ((servers_.gradients[{t, keys[i]}]), std::vector<float>(from, from + dim));
    }
  }
  for (size_t c = 0; c < dense_keys_.size(); ++c) {
    const auto from = dense.begin() + static_cast<ptrdiff_t>(c * DenseDim());
    EXPECT_EQ((servers_.gradients[{DenseTable(), dense_keys_[c]}]),
              std::vector<float>(from, from + DenseDim()));
  }
}

// A graph of 40 tables and three dense layers; each table has rows at both servers.
class ManyTablesTest : public StepRunnerTest {
 protected:
  ManyTablesTest() : StepRunnerTest({Model()}) {}

  static std::string Model() {
    std::string tables, layers, inputs;
    for (int t = 0; t < 40; ++t) {
      const std::string n = std::to_string(t);
      tables += (t > 0 ? ", " : "") + (R"({"name": "t)" + n + R"(", "dim": 2})");
      layers += R"({"name": "e)" + n + R"(", "kind": "embedding", "table": "t)" + n + R"("}, )";
      inputs += (t > 0 ? ", " : "") + ("\"e" + n + "\"");
    }
    return R"(model={"type": "graph", "tables": [)" + tables + R"(], "layers": [)" + layers +
           R"({"name": "all", "kind": "concat", "inputs": [)" + inputs + R"(]}, )" +
           R"({"name": "d0", "inputs": ["all"], "units": 4}, )" +
           R"({"name": "d1", "inputs": ["d0"], "units": 4}, )" +
           R"({"name": "logit", "inputs": ["d1"], "units": 1}]})";
  }
};

TEST_F(ManyTablesTest, AStepIsOnePullAndOnePushToAServerWhateverTheTables) {
  ASSERT_GT(job_.tables.size(), 40u);
  StepWindow& window = Read(50);
  for (Clock clock = 0; clock < 5; ++clock) {
    ASSERT_TRUE(Run(window, clock, /*until=*/5).ok());
    for (const uint32_t server : {0u, 1u}) {
      // The pull of the next step follows the push of this one.
      EXPECT_EQ(servers_.num_pulls[server], std::min<Clock>(clock + 2, 5)) << server;
      EXPECT_EQ(servers_.num_pushes[server], clock + 1) << server;
    }
  }
  // These were for all tables: all 7 keys of each, and the dense weights.
  EXPECT_EQ(servers_.gradients.size(), 40 * 7 + dense_keys_.size());
}

TEST_F(StepRunnerTest, AStepBeforeAPauseAsksForNoRowsBehindIt) {
  StepWindow& window = Read(30);
  const Result<StepOutcome> outcome = Run(window, 0, kMany, /*pause=*/true);
  ASSERT_TRUE(outcome.ok()) << outcome.status().message();
  EXPECT_TRUE(outcome->pause);
  EXPECT_THAT(servers_.log(), ElementsAre("pull 0", "push 0", "advance 1"));
}

TEST_F(StepRunnerTest, NothingIsPushedWhenTheLossIsNoNumber) {
  StepWindow& window = Read(10);
  ASSERT_TRUE(window.Fill(1, 1).ok());
  SetRows(window.at(0).prepared->parts);
  servers_.rows.begin()->second.front() = std::numeric_limits<float>::quiet_NaN();
  const Result<StepOutcome> outcome = runner_.Run(window, {.clock = 0, .until = 1});
  EXPECT_EQ(outcome.status().code(), Code::kCorruption);
  EXPECT_NE(outcome.status().message().find("diverged"), std::string::npos);
  EXPECT_THAT(servers_.log(), ElementsAre("pull 0"));
}

TEST_F(StepRunnerTest, ARefusedPushStopsTheStepsWithItsCode) {
  StepWindow& window = Read(30);
  servers_.HoldPushes();
  ASSERT_TRUE(Run(window, 0).ok());
  servers_.AnswerPushes(Code::kStaleView);
  EXPECT_EQ(Run(window, 1).status().code(), Code::kStaleView);
  for (const std::string& entry : servers_.log()) EXPECT_NE(entry, "advance 1");
}

class FewPushesTest : public StepRunnerTest {
 protected:
  FewPushesTest() : StepRunnerTest({"cluster.pushes_in_flight_max=3"}) {}
};

// The servers are late: they answer only when the maximum number of pushes waits for them.
TEST_F(FewPushesTest, NoMoreAreOnTheirWayThanTheJobAllows) {
  constexpr Clock kSteps = 12;
  StepWindow& window = Read(static_cast<int>(kSteps) * kRowsOfStep);
  servers_.HoldPushes();
  std::atomic<bool> last = false;
  const std::unique_ptr<Thread> late = StartThread("servers", [&] {
    for (bool end = false; !end; std::this_thread::yield()) {
      end = last;
      if (!end && servers_.num_held() < 3) continue;
      // A runner that did not wait would send more in this time.
      for (int turn = 0; turn < 20'000; ++turn) std::this_thread::yield();
      servers_.AnswerPushes();
    }
  });
  for (Clock clock = 0; clock < kSteps; ++clock) {
    const Result<StepOutcome> outcome = Run(window, clock, kSteps);
    EXPECT_TRUE(outcome.ok()) << outcome.status().message();
  }
  last = true;
  EXPECT_TRUE(runner_.Settle().ok());
  late->Join();
  EXPECT_EQ(servers_.num_held_max(), 3u);
  EXPECT_EQ(servers_.log().back(), "advance 12");
}

class CopiesTest : public StepRunnerTest {
 protected:
  CopiesTest() : StepRunnerTest({"parallel.interleave_num=2"}) {}
};

// Everything is asked for at once. The rows of copy 2 come only when the gradients of copy 1 have
// been pushed: so copy 1 was computed while they were on their way, and its push left before copy 2
// was computed.
TEST_F(CopiesTest, TheExchangesOfACopyTakePlaceWhileTheOtherIsComputed) {
  StepWindow& window = Read(10);
  ASSERT_TRUE(window.Fill(1, 1).ok());
  SetRows(window.at(0).prepared->parts);
  servers_.HoldPulls(/*pull=*/2, /*push=*/1);
  const Result<StepOutcome> outcome = runner_.Run(window, {.clock = 0, .until = 1});
  ASSERT_TRUE(outcome.ok()) << outcome.status().message();
  ASSERT_TRUE(runner_.Settle().ok());
  EXPECT_THAT(servers_.log(), ElementsAre("pull 0", "pull 0.1", "pull 0.2", "push 0.1", "push 0.2",
                                          "push 0", "advance 1"));
  // Rows 0 to 4 have the keys k0 to k4, rows 5 to 9 k5, k6, k0, k1 and k2: each in one push.
  EXPECT_EQ(servers_.gradients.size(), DenseTable() * 7 + dense_keys_.size());
}

// The gradients of all rows are there to leave before those of the last copy's dense weights are
// computed, and those of the first copy's own keys before the second copy is. A copy that did not
// wait for its own rows would have another loss than with all rows in place.
TEST_F(CopiesTest, GradientsOfRowsAreCompleteBeforeThoseOfDenseWeights) {
  StepWindow& window = Read(10);
  ASSERT_TRUE(window.Fill(1, 1).ok());
  WindowStep& step = window.at(0);
  SetRows(step.prepared->parts);
  const Result<StepOutcome> outcome = runner_.Run(window, {.clock = 0, .until = 1});
  ASSERT_TRUE(outcome.ok()) << outcome.status().message();
  ASSERT_TRUE(runner_.Settle().ok());
  step.rows->RequestRows(*step.prepared, {.clock = 1, .pushed = 1});
  std::vector<float> dense(model_->dense_floats()), gradients(model_->dense_floats());
  for (size_t list = 0; list < step.prepared->lists.size(); ++list) {
    ASSERT_TRUE(step.rows->Take(std::span<float>(dense), list).ok());
  }
  model_->SetDense(dense);
  std::vector<std::string> order;
  std::vector<std::vector<float>> rows;
  StepCompute compute(job_, *model_, *clock_);
  const PushPlan push(step.prepared->lists.front(), {});
  const StepTerms terms = {
      .push = push,
      .dense_gradients = std::span<float>(gradients),
      .need_piece =
          [&](uint32_t piece) {
            order.push_back("needs " + std::to_string(piece));
            return Status();
          },
      .piece_done = [&](uint32_t piece) { order.push_back("rows of " + std::to_string(piece)); }};
  const auto rows_done = [&] {
    order.emplace_back("all rows");
    rows = compute.row_gradients();
  };
  const auto tensor_done = [&](uint32_t, bool finite) {
    EXPECT_TRUE(finite);
    if (order.back() != "tensors") order.emplace_back("tensors");
  };
  const Result<ComputedStep> computed = compute.Run(step, terms, rows_done, tensor_done);
  ASSERT_TRUE(computed.ok()) << computed.status().message();
  EXPECT_EQ(computed->loss_sum, outcome->loss_sum);
  EXPECT_THAT(order, ElementsAre("needs 0", "rows of 0", "needs 1", "all rows", "tensors"));
  EXPECT_EQ(rows, compute.row_gradients());
}

// Of a step with one row, the second copy has none, and its pushes are empty.
TEST_F(CopiesTest, ACopyWithoutARowPushesNothing) {
  StepWindow& window = Read(11);
  for (Clock clock = 0; clock < 2; ++clock) {
    const Result<StepOutcome> outcome = Run(window, clock, 2);
    ASSERT_TRUE(outcome.ok()) << outcome.status().message();
  }
  ASSERT_TRUE(runner_.Settle().ok());
  EXPECT_EQ(servers_.gradients.size(), DenseTable() + dense_keys_.size());
  EXPECT_EQ(servers_.log().back(), "advance 2");
}

// The first step of an asynchronous job, whose dense layers are at servers or summed by allreduce.
class AsyncPushTest : public StepRunnerTest {
 protected:
  explicit AsyncPushTest(bool allreduce, const std::string& clip_norm)
      : StepRunnerTest(
            {"train.mode=async", "train.clip_norm=" + clip_norm,
             std::string("parallel.dense_exchange=") + (allreduce ? "allreduce" : "servers")}) {
    if (allreduce) {
      runner_.set_group({{ranks_[0].get(), ranks_[0].get(), nullptr}});
      dense_keys_.clear();  // None is pulled.
    }
    StepWindow& window = Read(kRowsOfStep);
    EXPECT_TRUE(window.Fill(1, 1).ok());
    SetRows(window.at(0).prepared->parts);
    const std::vector<float> dense = model_->InitialDense(1);
    model_->SetDense(dense);
    const Result<StepOutcome> outcome = runner_.Run(window, {.clock = 0, .until = 1});
    EXPECT_TRUE(outcome.ok()) << outcome.status().message();
  }
  void TestBody() override {}

 public:
  using Gradients = std::map<RowServers::RowKey, std::vector<float>>;

  // Returns the pushed gradients.
  static Gradients Pushed(bool allreduce, const std::string& clip_norm) {
    return AsyncPushTest(allreduce, clip_norm).servers_.gradients;
  }

 private:
  const std::vector<std::unique_ptr<Collective>> ranks_ = NewThreadCollectives(1);
};

// Under allreduce the dense gradients are in no push, and each is an update of its own: so its norm
// is that of the rows alone, and a smaller one than where dense layers are at servers.
TEST(OwnNormTest, IsThatOfThePushAlone) {
  constexpr double kMost = 1e-3;
  std::map<bool, float> shrinks;
  for (const bool allreduce : {false, true}) {
    const auto plain = AsyncPushTest::Pushed(allreduce, "0");
    const auto clipped = AsyncPushTest::Pushed(allreduce, "0.001");
    // The servers scale a push of ten examples so.
    const auto scale = static_cast<float>(1.0 / 10);
    SquareSum squares;
    for (const auto& [key, row] : plain) {
      std::vector<float> scaled = row;
      for (float& value : scaled) value *= scale;
      squares.Add(SquaresOf(scaled));
    }
    shrinks[allreduce] = ShrinkTo(kMost, squares);
    ASSERT_LT(shrinks[allreduce], 1);
    auto expected = plain;
    for (auto& [key, row] : expected) {
      for (float& value : row) value *= shrinks[allreduce];
    }
    EXPECT_EQ(clipped, expected) << allreduce;
  }
  EXPECT_GT(shrinks[true], shrinks[false]);
}

}  // namespace
}  // namespace hdps
