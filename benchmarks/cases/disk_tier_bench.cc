// Measures the cost of rows that do not fit into memory, and the size of a table with expiry.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "benchmarks/bench.h"
#include "benchmarks/clusters/job_run.h"
#include "common/base/byte_count.h"
#include "common/base/shard_map.h"
#include "common/job/optimizers/optimizer_record.h"
#include "common/job/optimizers/optimizers.h"
#include "common/job/spec/table_spec.h"
#include "common/platform/random.h"
#include "common/protocol/manifest_parts.h"
#include "embedding/memory/row_store.h"
#include "embedding/table.h"
#include "tools/synthetic/synthetic_log.h"

namespace hdps {
namespace {

constexpr char kBench[] = "disk_tier";

// A model on a log; the table is `times` as large as the limit.
struct Case {
  const char* name;
  const char* hidden;
  double times;
};
constexpr Case kCases[] = {
    {"large_mlp_4_times", "[1024, 512, 256, 128]", 4},
    {"large_mlp_10_times", "[1024, 512, 256, 128]", 10},
    {"small_mlp_4_times", "[64, 32]", 4},
};
constexpr uint64_t kBatch = 4096;
// So many steps make a table of more than a gigabyte; what a server needs for itself is small
// beside it.
constexpr uint64_t kSteps = 250;
constexpr uint64_t kVocabulary = 1'000'000;

// Writes a log of 13 numbers and 26 keys of a million values each, Zipf 1.05.
Status WriteLog(const BenchSetting& setting, FileSystem& files, const std::string& folder) {
  if (files.Exists(JoinPath(folder, "train.tsv"))) return Status();
  SyntheticLogSpec log;
  log.rows = kBatch * (setting.quick ? kSteps / 5 : kSteps);
  log.eval_rows = 0;
  log.vocabulary = kVocabulary;
  log.zipf = 1.05;
  HDPS_RETURN_IF_ERROR(files.MakeDirectories(folder));
  return WriteSyntheticLog(files, folder, log).status();
}

std::string JobText(const Case& c, const std::string& folder) {
  return R"({"name": "disk_tier", "data": {"format": "criteo", "train": [")" +
         JoinPath(folder, "train.tsv") +
         R"("]}, "model": {"type": "wide_deep", "embedding_dim": 16, "device": "cpu", "hidden": )" +
         c.hidden + R"(}, "train": {"epochs": 1, "batch_size": )" + std::to_string(kBatch) +
         R"(}, "parallel": {"gradients_mean": true}})";
}

// Runs without and with the limit in turns, each server in a process of its own.
Status RunCase(const BenchSetting& setting, FileSystem& files, const Case& c, BenchReport& report) {
  HDPS_RETURN_IF_ERROR(WriteLog(setting, files, setting.scratch));
  JobRunOptions whole;
  whole.job = JobText(c, setting.scratch);
  whole.overrides = setting.overrides;
  whole.placement = "processes";
  whole.out = JoinPath(setting.scratch, "whole");
  JobRunOptions tiered = whole;
  tiered.out = JoinPath(setting.scratch, "tiered");
  std::vector<double> speeds, whole_speeds, peaks, limits, fetched, on_disk;
  uint64_t limit = 0;
  for (int repeat = 0; repeat < setting.repeats; ++repeat) {
    PrintProgress(kBench, std::string(c.name) + ", run " + std::to_string(repeat + 1));
    HDPS_ASSIGN_OR_RETURN(const JobRun all, RunJob(setting, files, whole));
    HDPS_RETURN_IF_ERROR(files.RemoveAll(whole.out));
    if (limit == 0) {
      limit = static_cast<uint64_t>(all.row_bytes / c.times);
      tiered.overrides.push_back("cluster.memory_limit=" + std::to_string(limit));
    }
    HDPS_ASSIGN_OR_RETURN(const JobRun part, RunJob(setting, files, tiered));
    HDPS_RETURN_IF_ERROR(files.RemoveAll(tiered.out));
    if (part.digest != all.digest) {
      return {Code::kCorruption, std::string(c.name) + ": digest " + part.digest +
                                     " with a limit, " + all.digest + " without"};
    }
    constexpr double kMib = 1 << 20;
    speeds.push_back(part.examples_per_second);
    whole_speeds.push_back(all.examples_per_second);
    peaks.push_back(part.server_bytes_max / kMib);
    limits.push_back(static_cast<double>(limit) / kMib);
    on_disk.push_back(part.rows_on_disk / 1e6);
    fetched.push_back(part.rows_fetched / 1e6);
  }
  report.AddBeside(kBench, c.name, "examples, same digest", "examples/s", speeds, "without a limit",
                   whole_speeds);
  report.AddBeside(kBench, c.name, "peak memory of the server", "MiB", peaks, "its limit", limits);
  report.Add(kBench, c.name, "rows on disk alone", "M rows", on_disk);
  report.Add(kBench, c.name, "rows read back", "M rows", fetched);
  return Status();
}

// Keys occur once, except for one of a hundred, which occurs twice more within the next two
// million.
constexpr uint64_t kPassing = 50'000'000, kStepKeys = 100'000, kComeBack = 100;
constexpr uint64_t kWithin = 2'000'000;
constexpr uint32_t kShards = 32;

class PassingKeys {
 public:
  explicit PassingKeys(const TableSpec& spec) {
    for (uint32_t s = 0; s < kShards; ++s) {
      slices_.emplace_back(spec, TableId{0}, 1, RowPlacement{.shard = {s}, .num_shards = kShards});
    }
  }
  void Step(int64_t step) {
    std::vector<std::vector<Key>> keys(kShards);
    const auto see = [&](uint64_t number) {
      const Key key = MixBits(number + 1);
      keys[ShardOf(key, ShardBy::kKey, kShards).value].push_back(key);
    };
    const uint64_t begin = static_cast<uint64_t>(step - 1) * kStepKeys;
    for (uint64_t n = begin; n < begin + kStepKeys; ++n) {
      see(n);
      // The repeated keys, at two distances.
      for (const uint64_t distance : {kWithin / 4, kWithin}) {
        if (n >= distance && (n - distance) % kComeBack == 0) see(n - distance);
      }
    }
    for (uint32_t s = 0; s < kShards; ++s) {
      gradients_.assign(keys[s].size() * slices_[s].dim(), 0.01f);
      const TableSlice::Gradients part{keys[s], gradients_, 1};
      slices_[s].Apply({&part, 1}, 1, step);
      slices_[s].EndStep(step);
    }
  }
  double Mib() const {
    uint64_t bytes = 0;
    for (const TableSlice& slice : slices_) bytes += slice.bytes();
    return static_cast<double>(bytes) / (1 << 20);
  }
  RowCounts counts() const {
    RowCounts counts;
    for (const TableSlice& slice : slices_) counts.Add(slice.counters());
    return counts;
  }

 private:
  std::vector<TableSlice> slices_;
  std::vector<float> gradients_;
};

Status RunForgetting(const BenchSetting& setting, BenchReport& report) {
  constexpr char kName[] = "forget_50m_keys";
  if (!setting.Wants(kName)) return Status();
  TableSpec spec;
  spec.name = "deep";
  spec.dim = 16;
  spec.optimizer.record = &RecordOf(OptimizerKind::kLazyAdam);
  spec.policy.admit_after = 2;
  spec.policy.admit_sketch_bytes = 64 << 20;
  spec.policy.evict_after_steps = 40;
  const uint64_t passing = setting.quick ? kPassing / 10 : kPassing;
  const auto steps = static_cast<int64_t>(passing / kStepKeys);
  const double all_rows =
      static_cast<double>(kShards *
                          RowStore::PredictBytes(16 * 3 * sizeof(float), passing / kShards)) /
      (1 << 20);
  std::vector<double> rates, early, late, every, admitted, came_back;
  for (int repeat = 0; repeat < std::min(setting.repeats, 3); ++repeat) {
    PrintProgress(kBench, std::string(kName) + ", run " + std::to_string(repeat + 1));
    PassingKeys keys(spec);
    double most_early = 0, most = 0;
    const double seconds = SecondsOf([&] {
      for (int64_t step = 1; step <= steps; ++step) {
        keys.Step(step);
        most = std::max(most, keys.Mib());
        if (step == steps / 5) most_early = most;
      }
    });
    rates.push_back(static_cast<double>(passing) / seconds / 1e6);
    early.push_back(most_early);
    late.push_back(most);
    every.push_back(all_rows);
    admitted.push_back(static_cast<double>(keys.counts().admitted) / 1e6);
    came_back.push_back(static_cast<double>(passing) / kComeBack / 1e6);
  }
  report.AddBeside(kBench, kName, "most memory of the table", "MiB", late,
                   "after a fifth of the keys", early);
  report.AddBeside(kBench, kName, "most memory of the table", "MiB", late, "a row for every key",
                   every);
  report.AddBeside(kBench, kName, "keys admitted", "M keys", admitted, "keys that come back",
                   came_back);
  report.Add(kBench, kName, "updates", "M keys/s", rates);
  return Status();
}

}  // namespace

Status RunDiskTierBench(const BenchSetting& setting, FileSystem& files, BenchReport& report) {
  for (const Case& c : kCases) {
    if (setting.Wants(c.name)) HDPS_RETURN_IF_ERROR(RunCase(setting, files, c, report));
  }
  return RunForgetting(setting, report);
}

}  // namespace hdps
