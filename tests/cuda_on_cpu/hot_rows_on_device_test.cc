// Tests steps of a model with some rows cached on the device: which of their bytes cross the bus,
// what is waited for, and that rows change as on the host.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <limits>
#include <memory>
#include <vector>

#include "common/job/spec/cluster_spec.h"
#include "common/job/spec/model_spec.h"
#include "common/job/spec/table_spec.h"
#include "common/platform/executor.h"
#include "common/platform/monotonic_clock.h"
#include "kernels/dense_ops.h"
#include "tests/cuda_on_cpu/stand_in.h"
#include "tests/worker/exchange/row_servers.h"
#include "tests/worker/model/model_fixture.h"
#include "worker/cache/device_cache.h"
#include "worker/cache/hot_keys.h"
#include "worker/cache/hot_rows.h"
#include "worker/collective/rank_transport.h"

namespace hdps {
namespace {

using cuda_on_cpu::Counters;
using cuda_on_cpu::CountersNow;

size_t AlignedUp(size_t bytes) { return (bytes + 15) / 16 * 16; }

Job KeepingJob() {
  Job job = TestJob("wide_deep");
  job.model.device = "cuda";
  for (TableSpec& table : job.tables) {
    if (!table.dense) table.vocab_cache_size = 500;
  }
  return job;
}

// The cost of a call, in staged copies as the ops count them.
struct Cost {
  uint64_t up_bytes = 0, up_copies = 0, down_bytes = 0, down_copies = 0;
  friend bool operator==(const Cost&, const Cost&) = default;
  friend std::ostream& operator<<(std::ostream& to, const Cost& cost) {
    return to << cost.up_bytes << " bytes up in " << cost.up_copies << " copies, "
              << cost.down_bytes << " down in " << cost.down_copies;
  }
};
template <typename Call>
Cost CostOf(const Call& call) {
  const Counters before = CountersNow();
  call();
  const Counters after = CountersNow();
  return {after.up_bytes - before.up_bytes, after.up_copies - before.up_copies,
          after.down_bytes - before.down_bytes, after.down_copies - before.down_copies};
}

// A worker with a batch; three of four of its distinct keys have their rows on the device.
class KeepingWorker {
 public:
  KeepingWorker(const Job& job, uint32_t worker, bool keeps)
      : job_(job),
        executor_(NewInlineExecutor()),
        batch_(TestBatch(job, {.num_examples = 96, .seed = worker + 1})) {
    model_ = *NewModel(job, *executor_, worker);
    gradients_ = std::make_unique<DeviceArray>(&model_->ops());
    KeyFinder finder(job);
    finder.Find(batch_, &sets_);
    inputs_.resize(job.tables.size());
    rows_.resize(job.tables.size());
    rows_kept_ = std::make_unique<HotRows>(job, HotGroupsOf(job, finder.table_keys()), ops());
    EXPECT_EQ(rows_kept_->groups().size(), 1u);
    const std::vector<Key>& keys = sets_[0].unique;
    HotSplit& split = splits_.emplace_back();
    // The same keys on all workers: small numbers, hashed.
    std::vector<Key> hot;
    for (const Key key : keys) {
      if (keeps && key % 4 != 0) hot.push_back(key);
    }
    split.keys = std::make_shared<const HotKeys>(hot);
    split.slots.resize(keys.size());
    split.keys->Find(keys, split.slots.data());
    for (uint32_t i = 0; i < keys.size(); ++i) {
      if (split.slots[i] == kNotInSlab) split.cold.push_back(i);
    }
    for (size_t t = 0; t < inputs_.size(); ++t) {
      if (finder.table_keys()[t] < 0) continue;
      rows_[t].assign(keys.size() * job.tables[t].dim, 0.25f);
      inputs_[t] = {&sets_[0], rows_[t]};
    }
    HotRows::GroupRows first;
    for (const TableId table : tables()) {
      const size_t floats = rows_kept_->row_floats(table), dim = job.tables[table.value].dim;
      // Zeros are the initial state.
      std::vector<float>& of_table = first.emplace_back(hot.size() * floats);
      for (size_t i = 0; i < of_table.size(); ++i) of_table[i] = i % floats < dim ? 0.25f : 0.0f;
    }
    rows_kept_->Put(0, Slots(), first);
    model_->SetDense(model_->InitialDense(1));
    ops().Finish();
  }

  void Compute() {
    rows_kept_->Load(splits_);
    for (const TableId table : tables()) {
      inputs_[table.value].slab = rows_kept_->slab(table);
      inputs_[table.value].slots = &rows_kept_->loaded(0);
    }
    const size_t floats = model_->dense_floats();
    model_->Step(batch_, inputs_, &result_, DenseGradients(gradients_->Reserve(floats), floats));
  }
  HotStep StepNow() {
    values_.assign(job_.tables.size(), nullptr);
    for (const TableId table : tables()) {
      values_[table.value] = model_->RowGradientsOnDevice(table.value, 0);
    }
    HotStep step;
    step.number = ++number_;
    step.mine = {batch_.num_examples, false};
    step.hot = splits_;
    step.gradients = values_;
    return step;
  }
  Status Step() {
    Compute();
    return rows_kept_->Apply(StepNow()).status();
  }

  DenseOps& ops() { return model_->ops(); }
  HotRows& rows() { return *rows_kept_; }
  const std::vector<TableId>& tables() const { return rows_kept_->groups()[0].tables; }
  size_t keys() const { return splits_[0].slots.size(); }
  size_t cold() const { return splits_[0].cold.size(); }
  std::vector<uint32_t> Slots() const {
    std::vector<uint32_t> slots(splits_[0].keys->size());
    for (uint32_t s = 0; s < slots.size(); ++s) slots[s] = s;
    return slots;
  }
  // Returns the floats of `rows` rows in each table that caches rows.
  size_t Floats(size_t rows) const {
    size_t floats = 0;
    for (const TableId table : tables()) floats += rows * job_.tables[table.value].dim;
    return floats;
  }
  std::vector<HotSplit>& splits() { return splits_; }
  const Batch& batch() const { return batch_; }

 private:
  const Job& job_;
  const std::unique_ptr<Executor> executor_;
  const Batch batch_;
  std::unique_ptr<Model> model_;
  std::unique_ptr<DeviceArray> gradients_;
  std::vector<KeySet> sets_;
  std::vector<TableInput> inputs_;
  std::vector<std::vector<float>> rows_;
  std::unique_ptr<HotRows> rows_kept_;
  std::vector<HotSplit> splits_;
  std::vector<const float*> values_;
  StepResult result_;
  int64_t number_ = 0;
};

// Returns the bytes of a step without rows.
Cost WithoutRows(KeepingWorker& all_cold) {
  EXPECT_TRUE(all_cold.Step().ok());
  Cost cost = CostOf([&] { EXPECT_TRUE(all_cold.Step().ok()); });
  EXPECT_EQ(cost.up_copies, 1u);
  EXPECT_EQ(cost.down_copies, 1u);
  for (const TableId table : all_cold.tables()) {
    const size_t dim = all_cold.rows().slab(table)->dim;
    cost.up_bytes -= AlignedUp(4 * dim * all_cold.keys());
    cost.down_bytes -= AlignedUp(4 * dim * all_cold.keys());
  }
  return cost;
}

TEST(HotRowsOnDevice, OfAStepSlotsGoUpAndAWordATableComesDown) {
  const Job job = KeepingJob();
  KeepingWorker all_cold(job, 0, false), some(job, 0, true);
  Cost expected = WithoutRows(all_cold);
  ASSERT_GT(some.cold(), 10u);
  ASSERT_GT(some.keys(), 2 * some.cold());
  for (const TableId table : some.tables()) {
    const size_t dim = some.rows().slab(table)->dim;
    expected.up_bytes += AlignedUp(4 * dim * some.cold());
    expected.down_bytes += AlignedUp(4 * dim * some.cold());
  }
  ASSERT_TRUE(some.Step().ok());  // Warms up: memory grows.
  for (int i = 0; i < 3; ++i) {
    const Cost cost = CostOf([&] { ASSERT_TRUE(some.Step().ok()); });
    EXPECT_EQ(cost, expected) << "as many copies and bytes as without, but for the rows";
    // Slots, and the flag for finite gradients, are in both.
    const size_t slots = AlignedUp(4 * some.keys()), words = AlignedUp(4 * job.tables.size());
    if (i > 0) continue;
    std::printf(
        "figure: hot rows of %zu of %zu keys in %zu tables: %zu bytes of slots up and %zu down a "
        "step, in the step's own copies; %zu of their weights and as many of gradients stay\n",
        some.keys() - some.cold(), some.keys(), some.tables().size(), slots, words,
        4 * some.Floats(some.keys() - some.cold()));
  }
}

TEST(HotRowsOnDevice, AnUpdateWaitsForNothingAndClippingByTheNormFetchesANumberARow) {
  const Job job = KeepingJob();
  KeepingWorker worker(job, 0, true);
  ASSERT_TRUE(worker.Step().ok());
  worker.Compute();
  EXPECT_EQ(CostOf([&] { ASSERT_TRUE(worker.rows().Apply(worker.StepNow()).ok()); }), Cost());
  worker.Compute();
  const Cost summed = CostOf([&] { ASSERT_TRUE(worker.rows().Sum(worker.StepNow()).ok()); });
  const size_t numbers = worker.tables().size() * AlignedUp(8 * worker.keys());
  EXPECT_EQ(summed, (Cost{0, 0, numbers + AlignedUp(4 * job.tables.size()), 1}));
  EXPECT_EQ(CostOf([&] { ASSERT_TRUE(worker.rows().Update({.shrink = 0.5f}).ok()); }), Cost());
}

TEST(HotRowsOnDevice, RowsThatComeOrLeaveTravelInOneCopy) {
  const Job job = KeepingJob();
  KeepingWorker worker(job, 0, true);
  ASSERT_TRUE(worker.Step().ok());
  ASSERT_TRUE(worker.rows().Settle().ok());
  const std::vector<uint32_t> slots = {11, 3, 20, 7, 0};
  size_t bytes = 0;
  for (const TableId table : worker.tables()) {
    bytes += AlignedUp(4 * slots.size() * worker.rows().row_floats(table));
  }
  HotRows::GroupRows rows;
  const Cost leave = CostOf([&] { rows = worker.rows().Get(0, slots); });
  EXPECT_EQ(leave, (Cost{4 * slots.size(), 1, bytes, 1}));
  for (std::vector<float>& of_table : rows) {
    for (float& value : of_table) value += 1;
  }
  const Cost come = CostOf([&] {
    worker.rows().Put(0, slots, rows);
    worker.ops().Finish();
  });
  EXPECT_EQ(come.up_copies, 1u);
  EXPECT_EQ(come.down_copies, 0u);
  EXPECT_EQ(worker.rows().Get(0, slots), rows);
  std::printf("figure: %zu rows of %zu tables leave in %lu bytes and come in %lu, one copy each\n",
              slots.size(), worker.tables().size(), leave.down_bytes, come.up_bytes);
}

// Sums of several workers stay on the devices, but for the way between them.
TEST(HotRowsOnDevice, WorkersAddUpInTheDevicesMemory) {
  const Job job = KeepingJob();
  constexpr uint32_t kWorkers = 2;
  std::vector<std::unique_ptr<KeepingWorker>> workers;
  for (uint32_t w = 0; w < kWorkers; ++w) {
    workers.push_back(std::make_unique<KeepingWorker>(job, w, true));
  }
  // The same rows at both.
  workers[1]->splits()[0].keys = workers[0]->splits()[0].keys;
  HotSplit& split = workers[1]->splits()[0];
  for (uint32_t i = 0; i < split.slots.size(); ++i) {
    split.slots[i] = i % 3 == 0 || i >= split.keys->size() ? kNotInSlab : i;
  }
  const auto group = NewThreadCollectives(kWorkers);
  std::vector<DeviceTraffic> spent(kWorkers);
  OnAllRanks(kWorkers, [&](uint32_t w) {
    for (int i = 0; i < 3; ++i) {
      workers[w]->Compute();
      const DeviceTraffic before = workers[w]->ops().traffic();
      HotStep step = workers[w]->StepNow();
      step.group = group[w].get();
      ASSERT_TRUE(workers[w]->rows().Apply(step).ok());
      const DeviceTraffic after = workers[w]->ops().traffic();
      spent[w] = {after.up_bytes - before.up_bytes, after.up_copies - before.up_copies,
                  after.down_bytes - before.down_bytes, after.down_copies - before.down_copies};
    }
  });
  for (uint32_t w = 0; w < kWorkers; ++w) {
    EXPECT_EQ(spent[w].up_copies, 1u) << "places of its keys and the slots anyone touched";
    EXPECT_LE(spent[w].up_bytes, AlignedUp(4 * workers[w]->keys()) + 4 * split.keys->size());
    EXPECT_EQ(spent[w].down_copies, 0u);
  }
  const std::vector<uint32_t> all = workers[0]->Slots();
  const HotRows::GroupRows rows = workers[0]->rows().Get(0, all);
  EXPECT_EQ(rows, workers[1]->rows().Get(0, all)) << "both hold the same bits";
  EXPECT_NE(rows[0].front(), 0.25f);
  std::printf("figure: of a step of 2 workers %lu bytes of places and slots go up beside\n",
              spent[0].up_bytes);
}

TEST(HotRowsOnDevice, WhatIsNoNumberIsToldByTheNextStepAndBeforeRowsLeave) {
  const Job job = KeepingJob();
  KeepingWorker worker(job, 0, true);
  std::vector<float> bad(worker.keys() * 8, std::numeric_limits<float>::quiet_NaN());
  DeviceArray there(&worker.ops());
  worker.ops().Upload(bad, there.Reserve(bad.size()));
  worker.Compute();
  HotStep step = worker.StepNow();
  const std::vector<const float*> values(job.tables.size(), there.data());
  step.gradients = values;
  EXPECT_TRUE(worker.rows().Apply(step).ok()) << "nobody has waited for the device";
  const Status settled = worker.rows().Settle();
  EXPECT_EQ(settled.code(), Code::kCorruption);
  EXPECT_THAT(settled.message(), testing::HasSubstr("a gradient is not a number"));
  worker.rows().Clear();
  EXPECT_TRUE(worker.rows().Settle().ok());
  worker.Compute();
  step = worker.StepNow();
  step.gradients = values;
  EXPECT_TRUE(worker.rows().Apply(step).ok());
  worker.Compute();
  EXPECT_EQ(worker.rows().Apply(worker.StepNow()).status().code(), Code::kCorruption);
}

TEST(HotRowsOnDevice, NothingThatHasDivergedReachesAServer) {
  const Job job = KeepingJob();
  const std::unique_ptr<Executor> executor = NewInlineExecutor();
  const std::unique_ptr<MonotonicClock> clock = NewSystemClock();
  const std::unique_ptr<DenseOps> ops = *NewCudaOps({executor.get()});
  RowServers servers(2, job.cluster.shards, *clock);
  DeviceCache cache(job, HotGroupsOf(job, KeyFinder(job).table_keys()), *ops, servers.channel());
  ASSERT_TRUE(cache.Join(ViewId{1}, 0, nullptr).ok());
  const std::vector<Key> keys = {5, 6};
  for (const TableId table : cache.rows().groups()[0].tables) {
    for (const Key key : keys) {
      servers.rows[{table.value, key}].assign(cache.rows().row_floats(table), 0.5f);
    }
  }
  for (int i = 0; i < 5; ++i) cache.registry()->Count(0, keys);
  ASSERT_TRUE(cache.Refresh(1).ok());
  for (const bool diverges : {false, true}) {
    std::vector<HotSplit> splits(1);
    splits[0].keys = cache.registry()->keys(0);
    splits[0].slots = {0, 1};
    std::vector<float> gradients(16, diverges ? std::numeric_limits<float>::infinity() : 0.1f);
    DeviceArray there(ops.get());
    ops->Upload(gradients, there.Reserve(gradients.size()));
    const std::vector<const float*> values(job.tables.size(), there.data());
    cache.rows().Load(splits);
    HotStep step;
    step.mine.examples = 2;
    step.hot = splits;
    step.gradients = values;
    servers.stored.clear();
    EXPECT_TRUE(cache.Apply(step).ok());
    EXPECT_EQ(cache.Flush(2).code(), diverges ? Code::kCorruption : Code::kOk);
    EXPECT_EQ(servers.stored.size(), diverges ? 0 : 2 * cache.rows().groups()[0].tables.size());
  }
}

}  // namespace
}  // namespace hdps
