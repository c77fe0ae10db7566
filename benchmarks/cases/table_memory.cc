// Fills the stores of a table's shards and notes what a row takes at each of many sizes.
#include "benchmarks/cases/table_memory.h"

#include <cmath>
#include <cstdint>
#include <memory>
#include <numeric>
#include <vector>

#include "common/base/hash.h"
#include "common/base/shard_map.h"
#include "common/job/optimizers/optimizers.h"
#include "common/job/spec/table_spec.h"
#include "embedding/memory/row_policy.h"
#include "embedding/memory/row_store.h"

namespace hdps {
namespace {

constexpr char kBench[] = "table";
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

}  // namespace

void RunTableMemory(const BenchSetting& setting, BenchReport& report) {
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

}  // namespace hdps
