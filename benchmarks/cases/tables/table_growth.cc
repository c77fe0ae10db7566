// Grows slices that fill at the same rate, like the shards of a table, and keeps the longest push.
#include "benchmarks/cases/tables/table_growth.h"

#include <memory>
#include <vector>

#include "common/job/optimizers/optimizer_record.h"
#include "common/job/optimizers/optimizers.h"
#include "common/job/spec/init_spec.h"
#include "common/job/spec/table_spec.h"
#include "common/platform/executor.h"
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

}  // namespace

void RunTableGrowth(const BenchSetting& setting, BenchReport& report) {
  for (const Growth& growth : kGrowths) RunGrowth(setting, growth, report);
}

}  // namespace hdps
