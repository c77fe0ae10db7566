// Measures how long a row takes to come back from disk: the same steps on rows that do not fit into
// memory, and on rows that do.
#include <algorithm>
#include <memory>
#include <vector>

#include "benchmarks/cases/constants/constants.h"
#include "benchmarks/clusters/row_load.h"
#include "common/base/shard_map.h"
#include "common/job/optimizers/optimizer_record.h"
#include "common/job/optimizers/optimizers.h"
#include "common/job/spec/table_spec.h"
#include "common/protocol/manifest_parts.h"
#include "embedding/shard_memory.h"
#include "embedding/table.h"

namespace hdps {
namespace {

constexpr uint32_t kShards = 8;
constexpr uint64_t kRows = 300'000;
constexpr size_t kDraws = 40'000, kSteps = 12;
constexpr double kMicro = 1e6;

TableSpec Spec() {
  TableSpec spec;
  spec.name = "deep";
  spec.dim = 16;
  spec.optimizer.record = &RecordOf(OptimizerKind::kLazyAdam);
  return spec;
}

// The shards of one table, with or without a limit for all of them.
class Shards {
 public:
  Shards() { Make(); }
  Shards(std::unique_ptr<DiskStore> disk, uint64_t limit)
      : disk_(std::move(disk)),
        budget_(std::make_unique<MemoryBudget>(limit, [](uint64_t) { return 0; })) {
    Make();
  }

  // Reads and then changes each key, like a step.
  void Step(const std::vector<Key>& all) {
    std::vector<std::vector<Key>> keys(kShards);
    for (const Key key : all) keys[ShardOf(key, ShardBy::kKey, kShards).value].push_back(key);
    ++step_;
    for (uint32_t s = 0; s < kShards; ++s) {
      floats_.resize(keys[s].size() * slices_[s].dim());
      slices_[s].Read(keys[s], slices_[s].dim(), floats_);
      const TableSlice::Gradients part{keys[s], floats_, 1};
      slices_[s].Apply({&part, 1}, 1, step_);
      slices_[s].EndStep(step_);
    }
  }
  size_t bytes() const {
    size_t bytes = 0;
    for (const TableSlice& slice : slices_) bytes += slice.bytes();
    return bytes;
  }
  double fetched() const {
    uint64_t fetched = 0;
    for (const TableSlice& slice : slices_) fetched += slice.counters().fetched;
    return static_cast<double>(fetched);
  }
  Status failure() const { return memories_.empty() ? Status() : memories_[0]->failure(); }

 private:
  void Make() {
    for (uint32_t s = 0; s < kShards; ++s) {
      RowPlacement home{.shard = {s}, .num_shards = kShards};
      if (budget_ != nullptr) {
        memories_.push_back(std::make_unique<ShardMemory>(*budget_, *disk_));
        home.memory = memories_.back().get();
      }
      slices_.emplace_back(Spec(), TableId{0}, 1, home);
    }
  }

  const std::unique_ptr<DiskStore> disk_;
  const std::unique_ptr<MemoryBudget> budget_;
  std::vector<std::unique_ptr<ShardMemory>> memories_;
  std::vector<TableSlice> slices_;
  std::vector<float> floats_;
  int64_t step_ = 0;
};

}  // namespace

Status MeasureTier(const BenchSetting& setting, ConstantSamples* samples) {
  PrintProgress("constants", "rows on disk");
  constexpr uint64_t kDiskBytes = 8 << 20;
  constexpr double kPart = 0.25;
  Shards whole;
  for (const StepKeys& list : AllKeys(kRows)) whole.Step(list.keys);
  HDPS_ASSIGN_OR_RETURN(std::unique_ptr<DiskStore> disk,
                        NewRocksDiskStore({JoinPath(setting.scratch, "tier"), kDiskBytes}));
  Shards part(std::move(disk), static_cast<uint64_t>(kPart * static_cast<double>(whole.bytes())));
  for (const StepKeys& list : AllKeys(kRows)) part.Step(list.keys);
  const KeyBatches lists = ZipfLists(kRows, 1.05, kDraws, kSteps, 5);
  const auto seconds = [&lists](Shards& shards) {
    const double before = ProcessCpuSeconds();
    for (const StepKeys& list : lists) shards.Step(list.keys);
    return ProcessCpuSeconds() - before;
  };
  seconds(part);  // Warms up until memory holds the rows that the law predicts.
  for (int repeat = 0; repeat < setting.repeats; ++repeat) {
    const double all = seconds(whole), before = part.fetched(), some = seconds(part);
    const double fetched = std::max(part.fetched() - before, 1.0);
    (*samples)["tier.row_back"].push_back(kMicro * std::max(some - all, 0.0) / fetched);
  }
  return part.failure();
}

}  // namespace hdps
