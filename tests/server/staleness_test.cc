// Tests what a server makes of the age of rows: counts, gradients left out, compensated gradients,
// and rates.
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "common/job/optimizers/delay_compensation.h"
#include "common/job/optimizers/optimizers.h"
#include "common/job/spec/cluster_spec.h"
#include "common/job/spec/table_spec.h"
#include "common/job/spec/train_spec.h"
#include "common/job/tables/figure_tables.h"
#include "common/protocol/row_messages.h"
#include "common/telemetry/figure_layout.h"
#include "common/telemetry/figure_records.h"
#include "embedding/table.h"
#include "gtest/gtest.h"
#include "kernels/vector_width.h"
#include "server/staleness/pulled_rows.h"
#include "server/staleness/push_ages.h"
#include "tests/server/server_harness.h"

namespace hdps {
namespace {

using Floats = std::vector<float>;

TEST(PushAges, AreRoundedUpToClocks) {
  EXPECT_EQ(ClocksOf(0, 3), 0u);
  EXPECT_EQ(ClocksOf(1, 3), 1u);
  EXPECT_EQ(ClocksOf(3, 3), 1u);
  EXPECT_EQ(ClocksOf(4, 3), 2u);
  EXPECT_EQ(ClocksOf(7, 1), 7u);
  EXPECT_EQ(ClocksOf(~uint64_t{0}, 2), uint64_t{1} << 63);
  EXPECT_EQ(ClocksOf(5, 0), 0u);
}

TEST(PushAges, AMarkIsThatOfTheMomentOfReading) {
  PushAges ages;
  EXPECT_EQ(ages.MissedSince(0), std::nullopt);
  const uint64_t mark = ages.mark();
  EXPECT_EQ(ages.MissedSince(mark), 0u);
  ages.CountUpdate();
  ages.CountUpdate();
  EXPECT_EQ(ages.MissedSince(mark), 2u);
  EXPECT_EQ(ages.MissedSince(ages.mark() + 5), 0u);  // That of a former primary.
  ages.Reset();
  EXPECT_EQ(ages.mark(), mark);
}

// A server with workers whose pushes come in the order of the test.
class StalenessTest : public testing::Test {
 protected:
  void Begin(uint32_t workers, Job job) {
    server_.emplace(ServerSetting{.job = std::move(job), .workers = workers});
    clocks_.assign(workers, 0);
    marks_.assign(workers, {});
  }
  void Begin(uint32_t workers) { Begin(workers, TestJob(Mode::kAsync)); }

  // Reads rows of table 0, and of table 1 where `both`, for the worker's next step.
  void Pull(uint32_t worker, bool both = false) {
    std::vector<TableRows> rows = {{0, 1, {7}, {}}};
    if (both) rows.push_back({1, 2, {5}, {}});
    const uint64_t id = server_->Pull(worker, clocks_[worker], PullMode::kTrain, rows);
    const auto reply = server_->TakeReply<PullReply>(id);
    ASSERT_TRUE(reply.has_value());
    marks_[worker] = {reply->mark, reply->mark};
  }
  PushRequest NextPush(uint32_t worker, const std::vector<TableRows>& rows, uint64_t examples = 1) {
    const auto clock = clocks_[worker]++;
    PushRequest push = server_->PushOf(static_cast<uint64_t>(clock), clock, examples, rows);
    push.rows_mark = marks_[worker].rows;
    push.dense_mark = marks_[worker].dense;
    return push;
  }
  PushAck Send(uint32_t worker, const PushRequest& push) {
    server_->FromPeer(ServerHarness::WorkerPeer(worker), push, ++id_);
    return server_->Ack(id_);
  }
  PushAck Push(uint32_t worker, float value = 1, bool both = false) {
    std::vector<TableRows> rows = {{0, 1, {7}, {value}}};
    if (both) rows.push_back({1, 2, {5}, {value, value}});
    return Send(worker, NextPush(worker, rows));
  }

  // Returns the histogram of a table: nine buckets, then the sum.
  std::vector<uint64_t> Ages(size_t table) {
    constexpr FigureId kAges = FigureNamed("hdps_server_push_staleness_clocks");
    const FigureLayout layout(FigureRole::kServer, FigureTables(server_->job()).size());
    const Readings readings = server_->node().ReadFigures();
    const size_t width = FigureLayout::WidthOf(RecordOf(kAges));
    const auto first =
        readings.begin() + static_cast<std::ptrdiff_t>(layout.OffsetOf(kAges) + table * width);
    return {first, first + static_cast<std::ptrdiff_t>(width)};
  }

  struct Marks {
    uint64_t rows = 0, dense = 0;
  };
  std::optional<ServerHarness> server_;
  std::vector<Clock> clocks_;
  std::vector<Marks> marks_;
  uint64_t id_ = 900;
};

using Numbers = std::vector<uint64_t>;

TEST_F(StalenessTest, EachPushHasTheAgeOfItsRows) {
  Begin(2);
  Pull(0, true);
  Pull(1);
  Push(0, 1, true);  // Misses nothing: 0.
  EXPECT_EQ(Ages(0), Numbers({1, 0, 0, 0, 0, 0, 0, 0, 0, 0}));
  Push(1);  // Misses one of two workers: 1.
  EXPECT_EQ(Ages(0), Numbers({1, 1, 0, 0, 0, 0, 0, 0, 0, 1}));
  Pull(1);
  for (int i = 0; i < 5; ++i) {
    Pull(0);
    Push(0);  // Reads anew: 0 each time.
  }
  Push(1);  // Misses five of the other: 5 / 2 up, 3 clocks.
  EXPECT_EQ(Ages(0), Numbers({6, 1, 0, 1, 0, 0, 0, 0, 0, 4}));
  EXPECT_EQ(Ages(1), Numbers({1, 0, 0, 0, 0, 0, 0, 0, 0, 0}));
}

TEST_F(StalenessTest, RepeatsAndUnreadRowsHaveNoAge) {
  Begin(2);
  Pull(0);
  const PushRequest push = NextPush(0, {{0, 1, {7}, {1}}});
  EXPECT_EQ(Send(0, push).code, Code::kOk);
  EXPECT_EQ(Send(0, push).code, Code::kOk);
  Push(1);  // Has read nothing.
  EXPECT_EQ(Send(1, NextPush(1, {{0, 1, {7}, {1}}}, /*examples=*/0)).code, Code::kOk);
  EXPECT_EQ(Ages(0), Numbers({1, 0, 0, 0, 0, 0, 0, 0, 0, 0}));
  EXPECT_EQ(server_->node().counters().pushes_repeated, 1u);
}

// Rows that were read ahead are older than the dense ones of the same step.
TEST_F(StalenessTest, RowsReadAheadLackTheWorkersOwnSteps) {
  Job job = TestJob(Mode::kAsync);
  job.tables[1].dense = true;  // Is not counted by table, but judged.
  job.train.max_staleness = 2;
  Begin(1, std::move(job));
  Pull(0, true);
  const Marks first = marks_[0];
  for (int i = 0; i < 2; ++i) {
    Pull(0, true);
    EXPECT_FALSE(Push(0, 1, true).too_old);
  }
  Pull(0, true);
  marks_[0].rows = first.rows;
  EXPECT_FALSE(Push(0, 1, true).too_old);
  EXPECT_EQ(Ages(0), Numbers({2, 0, 1, 0, 0, 0, 0, 0, 0, 2}));
  Pull(0, true);
  marks_[0].dense = first.dense;  // Three updates ago.
  EXPECT_TRUE(Push(0, 1, true).too_old);
}

TEST_F(StalenessTest, InSyncThereIsNone) {
  Job job = TestJob(Mode::kSync);
  job.train.max_staleness = 1;
  job.train.staleness_rate = true;
  job.train.delay_compensation = 1;
  Begin(1, std::move(job));
  Pull(0);
  EXPECT_EQ(marks_[0].rows, 0u);
  EXPECT_FALSE(Push(0, 3).too_old);
  EXPECT_EQ(server_->Read(0, {7}), Floats({-3}));
  EXPECT_EQ(Ages(0), Numbers(10, 0));
}

TEST_F(StalenessTest, WhatIsTooOldIsLeftOutAndSaid) {
  Job job = TestJob(Mode::kAsync);
  job.train.max_staleness = 1;
  Begin(2, std::move(job));
  Pull(1);
  for (int i = 0; i < 2; ++i) Push(0);
  EXPECT_FALSE(Push(1).too_old);  // Two updates of two workers: one clock.
  EXPECT_EQ(server_->Read(0, {7}), Floats({-3}));
  Pull(1);
  for (int i = 0; i < 3; ++i) Push(0);
  const PushRequest late = NextPush(1, {{0, 1, {7}, {1}}});
  const PushAck ack = Send(1, late);
  EXPECT_EQ(ack.code, Code::kOk);  // The worker goes on.
  EXPECT_TRUE(ack.too_old);
  EXPECT_EQ(server_->Read(0, {7}), Floats({-6}));
  EXPECT_TRUE(Send(1, late).too_old) << "a repeat is told the same";
  EXPECT_EQ(server_->node().counters().pushes_too_old, 1u);
  EXPECT_EQ(server_->node().counters().pushes_repeated, 1u);
  EXPECT_EQ(Ages(0)[2], 1u) << "its age is counted";
  // It was no update, and the next one is taken.
  Pull(0);
  EXPECT_EQ(marks_[0].rows, 7u);
  Pull(1);
  EXPECT_FALSE(Push(1).too_old);
  EXPECT_EQ(server_->Read(0, {7}), Floats({-7}));
}

TEST_F(StalenessTest, TheRateFallsWithTheUpdatesMissed) {
  Job job = TestJob(Mode::kAsync);
  job.train.staleness_rate = true;
  Begin(2, std::move(job));
  Pull(1);
  Push(0);
  Push(1, 8);  // One missed: the whole rate.
  EXPECT_EQ(server_->Read(0, {7}), Floats({-9}));
  Pull(1);
  for (int i = 0; i < 4; ++i) Push(0, 0);
  Push(1, 8);  // Four missed: a quarter.
  EXPECT_EQ(server_->Read(0, {7}), Floats({-11}));
}

TEST(CompensateDelay, IsTheFormula) {
  const Floats now = {1, 2, 3, 4}, then = {1, 1, 5, 4.5f};
  Floats gradients = {2, 2, 2, -2};
  CompensateDelay(0.5f, 1, now, then, gradients);
  EXPECT_EQ(gradients, Floats({2, 4, -2, -3}));
  // Gradients that are still to be multiplied: g is their product with the scale.
  gradients = {4, 4, 4, -4};
  CompensateDelay(0.5f, 0.5f, now, then, gradients);
  EXPECT_EQ(gradients, Floats({4, 8, -4, -6}));
  Floats large = {1e30f};
  CompensateDelay(1, 1, Floats({1}), Floats({0}), large);
  EXPECT_EQ(large, Floats({1e30f})) << "what would be no number stays";
}

// For each optimizer that takes it, a late push has the bits of an update by the corrected
// gradient, whatever the vector width.
TEST_F(StalenessTest, LateGradientsAreCompensatedForEachOptimizer) {
  constexpr uint32_t kDim = 37;
  constexpr float kLambda = 0.75f;
  size_t walked = 0;
  for (const OptimizerRecord& record : kOptimizers) {
    if (record.whole_tensors) continue;
    Job job = TestJob(Mode::kAsync);
    job.tables = {TableOf("rows", kDim, record.kind)};
    job.tables[0].optimizer = DefaultsOf(record);
    job.tables[0].optimizer.learning_rate = 0.25f;
    job.train.delay_compensation = kLambda;
    const bool takes = TakesCompensation(record);
    walked += takes;
    Floats early(kDim), late(kDim);
    for (uint32_t i = 0; i < kDim; ++i) {
      early[i] = 0.5f + 0.03125f * static_cast<float>(i);
      late[i] = 1 - 0.0625f * static_cast<float>(i);
    }
    const std::vector<Key> keys = {7};
    Begin(2, job);
    const uint64_t id = server_->Pull(1, 0, PullMode::kTrain, {{0, kDim, keys, {}}});
    const auto pulled = server_->TakeReply<PullReply>(id);
    marks_[1] = {pulled->mark, pulled->mark};
    Send(0, NextPush(0, {{0, kDim, keys, early}}));
    const Floats now = server_->Read(0, keys);
    // Two examples, so that the gradient is half of what is sent.
    Send(1, NextPush(1, {{0, kDim, keys, late}}, 2));
    for (const VectorWidth width :
         {VectorWidth::kPlain, VectorWidth::kAvx2, VectorWidth::kAvx512}) {
      if (width > WidestVectors()) continue;
      TableSlice table(job.tables[0], TableId{0}, job.seed, width);
      Floats corrected = late;
      const auto then = pulled->rows.As<float>();
      for (uint32_t i = 0; i < kDim && takes; ++i) {
        corrected[i] += kLambda * (late[i] * 0.5f) * late[i] * (now[i] - then[i]);
      }
      TableSlice::Gradients part{keys, early};
      table.Apply({&part, 1}, 1, 1);
      part.values = corrected;
      table.Apply({&part, 1}, 0.5f, 1);
      Floats wanted(kDim);
      table.Read(keys, kDim, wanted);
      EXPECT_EQ(server_->Read(0, keys), wanted) << record.name;
    }
  }
  EXPECT_EQ(walked, 7u);
}

TEST_F(StalenessTest, GradientsInSixteenBitsAreCompensatedToo) {
  Job job = TestJob(Mode::kAsync);
  job.train.delay_compensation = 1;
  Begin(2, std::move(job));
  Pull(1);
  Push(0, -2);  // The row is 2.
  PushRequest push = NextPush(1, {{0, 1, {7}, {3}}});
  push.format = DType::kBf16;
  push.gradients = Buffer::CopyOf<uint16_t>(std::vector<uint16_t>{0x4040});  // 3
  push.scale_exponent = 1;  // 1.5: 1.5 + 1.5 1.5 2 = 6.
  Send(1, push);
  EXPECT_EQ(server_->Read(0, {7}), Floats({-4}));
}

// The gradient of a running average is its distance from the batch's value.
TEST_F(StalenessTest, RunningAveragesAreNotCompensated) {
  Job job = TestJob(Mode::kAsync);
  job.tables[0].averaged = {{.tensor = 0, .momentum = 0.5f}};
  job.train.delay_compensation = 1;
  Begin(2, std::move(job));
  Pull(1);
  Push(0, -2);
  EXPECT_EQ(server_->Read(0, {7}), Floats({1})) << "half of the way";
  Push(1, 3);
  EXPECT_EQ(server_->Read(0, {7}), Floats({-0.5f}));
}

TEST_F(StalenessTest, OtherMarksThanThoseOfTheKeptRowsAreNotCompensated) {
  Job job = TestJob(Mode::kAsync);
  job.train.delay_compensation = 1;
  Begin(2, std::move(job));
  Pull(1);
  Push(0, -2);
  marks_[1].rows = 9;
  Push(1, 3);
  EXPECT_EQ(server_->Read(0, {7}), Floats({-1}));
}

TEST(PulledRows, TakeMemoryOnlyWhereTheyAreKept) {
  Job job = TestJob(Mode::kAsync);
  EXPECT_EQ(PulledRowBytes(job, 1000), 0u);
  job.train.delay_compensation = 0.1;
  EXPECT_EQ(PulledRowBytes(job, 1000), 2000u);
  job.train.lookahead = 2;
  EXPECT_EQ(PulledRowBytes(job, 1000), 8000u);
  job.train.mode = Mode::kSync;
  EXPECT_EQ(PulledRowBytes(job, 1000), 0u);
}

}  // namespace
}  // namespace hdps
