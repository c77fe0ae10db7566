// Grows slices that fill at the same rate, like the shards of a table: keeps the longest push, and
// notes what a row takes at each of many sizes.
#include "benchmarks/cases/tables/table_growth.h"

#include <cmath>
#include <cstdint>
#include <memory>
#include <numeric>
#include <utility>
#include <vector>

#include "common/base/hash.h"
#include "common/base/shard_map.h"
#include "common/job/optimizers/optimizer_record.h"
#include "common/job/optimizers/optimizers.h"
#include "common/job/spec/init_spec.h"
#include "common/job/spec/table_spec.h"
#include "common/platform/executor.h"
#include "embedding/memory/row_policy.h"
#include "embedding/memory/row_store.h"
#include "embedding/table.h"

namespace hdps {
namespace {

constexpr char kBench[] = "table";
constexpr float kGradient = 0x1p-10f;

struct Growth {
  const char* name;
  uint32_t slices;
  size_t keys;  // Per slice and call.
  uint64_t rows;
};
constexpr Growth kGrowths[] = {{"growth_dim16_1slice", 1, 1000, 20'000'000},
                               {"growth_dim16_64slices", 64, 1000, 20'000'000}};

// Measures the longest call while slices grow from nothing, all filled by each push.
void RunGrowth(const BenchSetting& setting, const Growth& growth, BenchReport& report) {
  constexpr uint32_t kDim = 16;
  if (!setting.Wants(growth.name)) return;
  PrintProgress(kBench, growth.name);
  const std::unique_ptr<Executor> executor = NewTbbExecutor(setting.threads);
  TableSpec spec;
  spec.name = "rows";
  spec.dim = kDim;
  spec.optimizer.record = &RecordOf(OptimizerKind::kRowwiseAdagrad);
  spec.init = {InitKind::kNormal, 0.01f};
  const uint64_t rows = setting.quick ? growth.rows / 5 : growth.rows;
  const uint64_t calls = rows / growth.slices / growth.keys;
  std::vector<double> longest, usual;
  const std::vector<float> gradients(growth.keys * kDim, kGradient);
  for (int repeat = 0; repeat < setting.repeats; ++repeat) {
    std::vector<TableSlice> slices;
    for (uint32_t s = 0; s < growth.slices; ++s) {
      slices.emplace_back(spec, TableId{0}, 1, RowPlacement{ShardId{s}, growth.slices, nullptr});
    }
    std::vector<double> seconds;
    for (uint64_t call = 0; call < calls; ++call) {
      seconds.push_back(SecondsOf([&] {
        executor->ParallelFor(growth.slices, [&](size_t s) {
          std::vector<Key> keys(growth.keys);
          for (size_t k = 0; k < growth.keys; ++k) keys[k] = call * growth.keys + k;
          const TableSlice::Gradients part{keys, gradients, 1};
          slices[s].Apply({&part, 1}, 1, 1);
        });
      }));
    }
    longest.push_back(1e3 * QuantileOf(seconds, 1));
    usual.push_back(1e3 * MedianOf(seconds));
  }
  report.AddBeside(kBench, growth.name, "longest call", "ms", longest, "the usual call", usual);
}

constexpr uint32_t kShards = 32;
constexpr uint64_t kSalt = 1;
// Sizes: 1M rows, and each the fourth root of 2 times as many as the one before.
constexpr double kRowsMin = 1e6, kSizesPerDoubling = 4;

struct MemoryCase {
  const char* name;
  std::vector<std::pair<OptimizerKind, uint32_t>> tables;  // Rule and dim of tables of these keys.
};
const std::vector<MemoryCase>& Cases() {
  static const std::vector<MemoryCase> cases = {
      {"memory_ftrl_dim1", {{OptimizerKind::kFtrl, 1}}},
      {"memory_rowwise_adagrad_dim16", {{OptimizerKind::kRowwiseAdagrad, 16}}},
      {"memory_rowwise_adagrad_dim64", {{OptimizerKind::kRowwiseAdagrad, 64}}},
      {"memory_wide_and_deep", {{OptimizerKind::kFtrl, 1}, {OptimizerKind::kRowwiseAdagrad, 16}}},
  };
  return cases;
}

// Returns the bytes of a row, all tables together, at each size.
std::vector<double> BytesOfRow(const std::vector<size_t>& row_bytes, size_t sizes) {
  std::vector<std::unique_ptr<RowStore>> stores;
  for (const size_t bytes : row_bytes) {
    for (uint32_t s = 0; s < kShards; ++s) {
      stores.push_back(std::make_unique<RowStore>(bytes, kSalt, kHugePageBytes, true, s));
    }
  }
  std::vector<double> of_row;
  uint64_t rows = 0;
  for (size_t size = 0; size < sizes; ++size) {
    const double factor = std::exp2(static_cast<double>(size) / kSizesPerDoubling);
    for (const auto end = static_cast<uint64_t>(kRowsMin * factor); rows < end; ++rows) {
      const Key key = MixBits(rows);
      const uint32_t shard = ShardOf(key, ShardBy::kKey, kShards).value;
      for (size_t t = 0; t < row_bytes.size(); ++t) stores[t * kShards + shard]->Insert(key, 0);
    }
    double bytes = 0;
    for (const auto& store : stores) bytes += static_cast<double>(store->bytes());
    of_row.push_back(bytes / static_cast<double>(rows));
  }
  return of_row;
}

void RunMemory(const BenchSetting& setting, BenchReport& report) {
  const size_t sizes = setting.quick ? 5 : 17;
  for (const MemoryCase& c : Cases()) {
    if (!setting.Wants(c.name)) continue;
    PrintProgress(kBench, c.name);
    std::vector<size_t> row_bytes;
    double content = 0;
    for (const auto& [rule, dim] : c.tables) {
      TableSpec spec;
      spec.dim = dim;
      spec.optimizer.record = &RecordOf(rule);
      row_bytes.push_back(RowBytes(spec));
      content += static_cast<double>(row_bytes.back() + sizeof(Key));
    }
    std::vector<double> bytes = BytesOfRow(row_bytes, sizes);
    const double mean = std::accumulate(bytes.begin(), bytes.end(), 0.0) / double(sizes);
    report.Add(kBench, c.name, "content of a row", "B", {content});
    report.Add(kBench, c.name, "beyond it, mean over sizes", "B", {mean - content});
    report.Add(kBench, c.name, "beyond it, most", "B", {QuantileOf(bytes, 1) - content});
  }
}

}  // namespace

void RunTableGrowth(const BenchSetting& setting, BenchReport& report) {
  for (const Growth& growth : kGrowths) RunGrowth(setting, growth, report);
  RunMemory(setting, report);
}

}  // namespace hdps
