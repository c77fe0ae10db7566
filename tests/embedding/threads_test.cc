// Tests that a step of a Wide&Deep model, with distinct keys, FTRL and lazy Adam, gives the same
// bits on any number of threads.
#include <atomic>
#include <functional>
#include <memory>
#include <vector>

#include "common/base/shard_map.h"
#include "common/job/optimizers/optimizer_record.h"
#include "common/job/optimizers/optimizers.h"
#include "common/job/spec/table_spec.h"
#include "common/platform/executor.h"
#include "common/platform/random.h"
#include "embedding/table.h"
#include "gtest/gtest.h"

namespace hdps {
namespace {

constexpr uint32_t kShards = 32;

// Uses as many threads as given, whatever the cores.
void ParallelFor(int threads, size_t count, const std::function<void(size_t)>& body) {
  std::atomic<size_t> next{0};
  const auto work = [&] {
    for (size_t i = next++; i < count; i = next++) body(i);
  };
  std::vector<std::unique_ptr<Thread>> started;
  for (int t = 0; t < threads; ++t) started.push_back(StartThread("shards", work));
  for (const std::unique_ptr<Thread>& thread : started) thread->Join();
}

TableSpec SpecOf(OptimizerKind rule, uint32_t dim) {
  TableSpec spec;
  spec.name = "rows";
  spec.dim = dim;
  spec.optimizer.record = &RecordOf(rule);
  return spec;
}

// Calls body(0), ..., body(count - 1), each once, in parallel.
using Parallel = std::function<void(size_t count, const std::function<void(size_t)>& body)>;

uint64_t DigestAfterSteps(const Parallel& parallel) {
  std::vector<TableSlice> wide, deep;
  for (uint32_t s = 0; s < kShards; ++s) {
    wide.emplace_back(SpecOf(OptimizerKind::kFtrl, 1), TableId{0}, 1);
    deep.emplace_back(SpecOf(OptimizerKind::kLazyAdam, 80), TableId{1}, 1);
  }
  Random random(12);
  for (int64_t step = 1; step <= 3; ++step) {
    std::vector<Key> of_shard[kShards];
    for (int i = 0; i < 20000; ++i) {
      const Key key = MixBits(random.Below(1 + random.Below(30000)));
      of_shard[ShardOf(key, ShardBy::kKey, kShards).value].push_back(key);
    }
    parallel(kShards, [&](size_t s) {
      // Like two workers: keys that both have, and that one has twice, are summed.
      std::vector<float> gradients(of_shard[s].size() * 80);
      for (size_t i = 0; i < gradients.size(); ++i) {
        gradients[i] = UnitFloat(RandomAt(static_cast<uint64_t>(step) * kShards + s, i)) - 0.5f;
      }
      for (std::vector<TableSlice>* table : {&wide, &deep}) {
        const uint32_t dim = (*table)[s].dim();
        const size_t floats = of_shard[s].size() * dim;
        // The pushed gradients depend on the rows that were read, as in training.
        std::vector<float> rows(floats);
        (*table)[s].Read(of_shard[s], dim, rows);
        for (size_t i = 0; i < floats; ++i) rows[i] += gradients[i];
        const TableSlice::Gradients part{of_shard[s], rows, 0.5f};
        (*table)[s].Apply(std::vector<TableSlice::Gradients>{part, part}, 0.25f, step);
      }
    });
  }
  RowsDigest sum;
  for (uint32_t s = 0; s < kShards; ++s) {
    sum.Add(*wide[s].Digest());
    sum.Add(*deep[s].Digest());
  }
  return sum.sum[0];
}

uint64_t DigestOn(int threads) {
  return DigestAfterSteps([threads](size_t count, const std::function<void(size_t)>& body) {
    ParallelFor(threads, count, body);
  });
}
uint64_t DigestOn(Executor& executor) {
  return DigestAfterSteps([&](size_t count, const std::function<void(size_t)>& body) {
    executor.ParallelFor(count, body);
  });
}

TEST(Threads, OneTwoEightAndSixteenGiveTheSameBits) {
  const uint64_t alone = DigestOn(*NewInlineExecutor());
  for (const int threads : {1, 2, 8, 16}) EXPECT_EQ(DigestOn(threads), alone) << threads;
}

TEST(Threads, SoDoTasks) {
  const uint64_t alone = DigestOn(*NewInlineExecutor());
  for (const int threads : {1, 2, 4}) {
    EXPECT_EQ(DigestOn(*NewTbbExecutor(threads)), alone) << threads;
  }
}

}  // namespace
}  // namespace hdps
