// Measures the host's work in a step of a large Wide&Deep model: distinct keys, FTRL, lazy Adam;
// and a table of more than 2^31 numbers.
#include <algorithm>
#include <bit>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "benchmarks/bench.h"
#include "common/base/shard_map.h"
#include "common/job/job_file.h"
#include "common/job/job_spec.h"
#include "common/job/optimizers/optimizer_record.h"
#include "common/job/optimizers/optimizers.h"
#include "common/job/spec/cluster_spec.h"
#include "common/job/spec/table_spec.h"
#include "common/platform/executor.h"
#include "common/platform/random.h"
#include "embedding/table.h"
#include "tools/synthetic/zipf.h"
#include "worker/data/batch.h"
#include "worker/exchange/key_split.h"
#include "worker/model/model.h"

namespace hdps {
namespace {

constexpr char kBench[] = "updates";
constexpr float kGradient = 0x1p-10f;

TableSpec SpecOf(uint32_t dim, OptimizerKind rule) {
  TableSpec spec;
  spec.name = "rows";
  spec.dim = dim;
  spec.optimizer.record = &RecordOf(rule);
  return spec;
}

// Fields that share an id: kOfAllFields, any field may have it; kOfOneField, a dictionary numbers
// the values of each field separately.
enum class Ids { kOfAllFields, kOfOneField };

// A step of 16,000 examples with 39 fields over a vocabulary of 200,000; tables of dim 1 and dim
// 80.
class LargeStep {
 public:
  explicit LargeStep(Ids ids) {
    const uint64_t ids_of_field = ids == Ids::kOfOneField ? kVocabulary / kFields : kVocabulary;
    const Zipf zipf(ids_of_field, kExponent);
    Random random(3);
    batch_.sparse.resize(kFields);
    for (size_t i = 0; i < kKeys; ++i) {
      const uint64_t field = i / kExamples;
      const uint64_t first = ids == Ids::kOfOneField ? field * ids_of_field : 0;
      batch_.sparse[field].keys.push_back(MixBits(first + zipf.Draw(random)));
    }
    gradients_.assign(size_t{kVocabulary} * kDeepDim, kGradient);
    for (uint32_t s = 0; s < kShards; ++s) {
      wide_.emplace_back(SpecOf(1, OptimizerKind::kFtrl), TableId{0}, 1);
      deep_.emplace_back(SpecOf(kDeepDim, OptimizerKind::kLazyAdam), TableId{1}, 1);
    }
  }

  // Does the worker's part: finds the distinct keys by shard, and the request's keys.
  void FindDistinct(KeyFinder& finder) {
    finder.Find(batch_, &sets_);
    KeysOfTable table;
    table.table = {0};
    table.row_floats = 1;
    table.keys = sets_[0].unique;
    table.shard_begin = sets_[0].shard_begin;
    split_.Compute(shards_, 1, {&table, 1});
  }
  void UpdateWide(Executor& executor) { Update(executor, 1, &wide_); }
  void UpdateDeep(Executor& executor) { Update(executor, kDeepDim, &deep_); }
  void CountStep() { ++step_; }
  double NumDistinct() const { return static_cast<double>(sets_[0].unique.size()); }
  // Finds the addresses of the deep rows. Requires: all rows exist.
  void LocateDeep() {
    const std::span<const Key> keys = split_.at({0}).keys.As<Key>();
    deep_rows_.clear();
    for (const Key key : keys) {
      const RowStore& memory = deep_[ShardOf(key, ShardBy::kKey, kShards).value].memory();
      deep_rows_.push_back(reinterpret_cast<uint32_t*>(memory.Row(memory.Find(key)->row())));
    }
  }
  // Writes a word of each line that UpdateDeep changes, without changing it, and reads the lines of
  // the gradients, in the same order but without the index.
  void TouchDeep(Executor& executor) {
    constexpr size_t kPrefetch = 8, kLineWords = 16, kRowWords = 3 * kDeepDim;
    const uint32_t nothing = nothing_;
    executor.ParallelFor(kShards, [&](size_t s) {
      const size_t begin = deep_rows_.size() * s / kShards;
      const size_t end = deep_rows_.size() * (s + 1) / kShards;
      for (size_t k = begin; k < end; ++k) {
        const uint32_t* const ahead = deep_rows_[std::min(k + kPrefetch, end - 1)];
        for (size_t at = 0; at < kRowWords; at += kLineWords) __builtin_prefetch(ahead + at);
        uint32_t* const row = deep_rows_[k];
        const float* const gradient = &gradients_[k * kDeepDim];
        uint32_t bits = 0;
        for (size_t i = 0; i < kDeepDim; i += kLineWords) {
          bits |= std::bit_cast<uint32_t>(gradient[i]);
        }
        for (size_t i = 0; i < kRowWords; i += kLineWords) row[i] |= bits & nothing;
      }
    });
  }

  static constexpr uint32_t kShards = 32;
  static constexpr uint32_t kDeepDim = 80;
  static constexpr char kJob[] = R"({"name": "updates",
      "data": {"format": "libffm", "num_fields": 39, "train": ["unread"]},
      "model": {"type": "wide_deep", "embedding_dim": 80, "hidden": [8]}})";

 private:
  static constexpr size_t kFields = 39, kExamples = 16000, kKeys = kExamples * kFields;
  static constexpr uint64_t kVocabulary = 200'000;
  static constexpr double kExponent = 1.05;

  void Update(Executor& executor, size_t dim, std::vector<TableSlice>* slices) {
    const std::span<const Key> keys = split_.at({0}).keys.As<Key>();
    const std::vector<uint32_t>& counts = split_.at({0}).tables[0].shard_counts;
    size_t begins[kShards] = {};
    for (uint32_t s = 1; s < kShards; ++s) begins[s] = begins[s - 1] + counts[s - 1];
    executor.ParallelFor(kShards, [&](size_t s) {
      const std::span<const Key> own = keys.subspan(begins[s], counts[s]);
      const auto values = std::span(gradients_).subspan(begins[s] * dim, own.size() * dim);
      const TableSlice::Gradients part{own, values, 1};
      (*slices)[s].Apply({&part, 1}, 1, step_);
    });
  }

  Batch batch_;
  std::vector<KeySet> sets_;
  std::vector<float> gradients_;
  std::vector<uint32_t*> deep_rows_;
  volatile uint32_t nothing_ = 0;  // Zero, which the compiler does not know.
  std::vector<TableSlice> wide_, deep_;
  ShardMap shards_{std::vector<ServerId>(kShards, ServerId{0})};
  KeySplit split_;
  int64_t step_ = 1;
};

struct StepTimes {  // Milliseconds.
  double distinct = 0, wide = 0, deep = 0, touch = 0;
  double all() const { return distinct + wide + deep; }
};

StepTimes TimeStep(LargeStep& step, KeyFinder& finder, Executor& executor) {
  constexpr double kMilli = 1e3;
  step.CountStep();
  StepTimes times;
  times.distinct = kMilli * SecondsOf([&] { step.FindDistinct(finder); });
  times.wide = kMilli * SecondsOf([&] { step.UpdateWide(executor); });
  times.deep = kMilli * SecondsOf([&] { step.UpdateDeep(executor); });
  times.touch = kMilli * SecondsOf([&] { step.TouchDeep(executor); });
  return times;
}

Status RunLargeStep(const BenchSetting& setting, Ids ids, BenchReport& report) {
  const std::string name =
      ids == Ids::kOfOneField ? "s27_624k_keys_ids_of_one_field" : "s27_624k_keys";
  if (!setting.Wants(name)) return Status();
  PrintProgress(kBench, name);
  HDPS_ASSIGN_OR_RETURN(Job job, ParseJob(LargeStep::kJob, kBench, {}));
  job.cluster.shards = LargeStep::kShards;
  LargeStep step(ids);
  const auto one = NewTbbExecutor(1), two = NewTbbExecutor(2);
  KeyFinder finder_of_one(job, one.get()), finder_of_two(job, two.get());
  TimeStep(step, finder_of_two, *two);  // Creates the rows.
  step.LocateDeep();
  std::vector<double> all[2], distinct[2], wide[2], deep[2], touch[2], scaling;
  constexpr int kStepsASample = 5;
  for (int repeat = 0; repeat < setting.repeats; ++repeat) {
    StepTimes sums[2];
    for (int i = 0; i < kStepsASample; ++i) {
      for (const int threads : {1, 2}) {
        const StepTimes times = threads == 1 ? TimeStep(step, finder_of_one, *one)
                                             : TimeStep(step, finder_of_two, *two);
        StepTimes& sum = sums[threads - 1];
        sum.distinct += times.distinct / kStepsASample;
        sum.wide += times.wide / kStepsASample;
        sum.deep += times.deep / kStepsASample;
        sum.touch += times.touch / kStepsASample;
      }
    }
    for (const int t : {0, 1}) {
      all[t].push_back(sums[t].all());
      distinct[t].push_back(sums[t].distinct);
      wide[t].push_back(sums[t].wide);
      deep[t].push_back(sums[t].deep);
      touch[t].push_back(sums[t].touch);
    }
    scaling.push_back(sums[0].all() / (2 * sums[1].all()));
  }
  const auto add = [&](const char* part, const std::vector<double>(&both)[2]) {
    report.Add(kBench, name, std::string(part) + ", 1 thread", "ms", both[0]);
    report.AddBeside(kBench, name, std::string(part) + ", 2 threads", "ms", both[1], "1 thread",
                     both[0]);
  };
  add("distinct keys", distinct);
  add("FTRL dim 1", wide);
  add("lazy Adam dim 80", deep);
  add("lazy Adam's lines touched", touch);
  add("step", all);
  report.Add(kBench, name, "distinct keys of the step", "keys", {step.NumDistinct()});
  report.Add(kBench, name, "speedup of 2 threads / 2", "", scaling);
  return Status();
}

// Changes every row of a table of more than 2^31 numbers twice, and reads it back.
Status RunHuge(const BenchSetting& setting, BenchReport& report) {
  const std::string name = "huge_2e31";
  // Takes 9 GiB, so it runs only if named.
  if (setting.only.empty() || !setting.Wants(name)) return Status();
  PrintProgress(kBench, name);
  constexpr uint32_t kDim = 4096;
  constexpr uint64_t kRows = (uint64_t{1} << 31) / kDim + 5000;
  constexpr size_t kCallRows = 512;
  TableSpec spec = SpecOf(kDim, OptimizerKind::kSgd);
  spec.init.kind = InitKind::kZeros;
  spec.optimizer.learning_rate = 1;
  TableSlice slice(spec, TableId{0}, 1);
  std::vector<Key> keys(kCallRows);
  std::vector<float> values(kCallRows * kDim), rows(values.size());
  uint64_t wrong = 0;
  const auto for_all = [&](const auto& work) {
    for (uint64_t first = 0; first < kRows; first += kCallRows) {
      keys.resize(std::min<uint64_t>(kCallRows, kRows - first));
      for (size_t k = 0; k < keys.size(); ++k) {
        keys[k] = first + k;
        std::fill_n(&values[k * kDim], kDim, static_cast<float>(keys[k] % 1021));
      }
      work(std::span(values).first(keys.size() * kDim));
    }
  };
  const auto step = [&](int64_t number) {
    for_all([&](std::span<const float> gradients) {
      const TableSlice::Gradients part{keys, gradients, -1};
      slice.Apply({&part, 1}, 1, number);
    });
  };
  const double making = SecondsOf([&] { step(1); }), updating = SecondsOf([&] { step(2); });
  for_all([&](std::span<const float> gradients) {
    slice.Read(keys, kDim, std::span(rows).first(gradients.size()));
    for (size_t i = 0; i < gradients.size(); ++i) wrong += rows[i] != 2 * gradients[i] ? 1 : 0;
  });
  if (wrong > 0 || slice.num_rows() != kRows) {
    return {Code::kCorruption, std::to_string(wrong) + " of " + std::to_string(kRows * kDim) +
                                   " numbers are not what was trained"};
  }
  constexpr auto kNumbers = static_cast<double>(kRows * kDim);
  report.Add(kBench, name, "numbers made (the system clears their pages)", "1/s",
             {kNumbers / making});
  report.Add(kBench, name, "numbers updated", "1/s", {kNumbers / updating});
  return Status();
}

}  // namespace

Status RunUpdatesBench(const BenchSetting& setting, FileSystem&, BenchReport& report) {
  for (const Ids ids : {Ids::kOfAllFields, Ids::kOfOneField}) {
    HDPS_RETURN_IF_ERROR(RunLargeStep(setting, ids, report));
  }
  return RunHuge(setting, report);
}

}  // namespace hdps
