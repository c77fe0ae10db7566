// Reads and updates the rows of a wide and a deep table, joined and apart, for the same requests.
#include "benchmarks/cases/tables/table_joined.h"

#include <span>
#include <string>
#include <vector>

#include "benchmarks/clusters/row_load.h"
#include "common/job/optimizers/optimizer_record.h"
#include "common/job/optimizers/optimizers.h"
#include "common/job/spec/init_spec.h"
#include "common/job/spec/table_spec.h"
#include "common/platform/executor.h"
#include "embedding/table.h"

namespace hdps {
namespace {

constexpr char kBench[] = "table";
constexpr uint32_t kShards = 32;
constexpr size_t kDraws = size_t{26} * 4096;  // Keys of one request: a batch of 4096 examples.
constexpr size_t kRequests = 16;
constexpr double kZipf = 1.05;
constexpr float kGradient = 0x1p-10f;

struct Pair {
  const char* name;
  uint32_t dim;
  OptimizerKind rule;
  uint64_t rows;
};
constexpr Pair kPairs[] = {
    {"joined_rowwise_adagrad_dim16", 16, OptimizerKind::kRowwiseAdagrad, 5'000'000},
    {"joined_lazy_adam_dim16", 16, OptimizerKind::kLazyAdam, 5'000'000},
    {"joined_lazy_adam_dim80", 80, OptimizerKind::kLazyAdam, 2'000'000}};

// The tables of a wide and deep model with their rows.
class WideAndDeep {
 public:
  WideAndDeep(const Pair& pair, bool joined)
      : joined_(joined),
        dim_(pair.dim),
        wide_gradients_(kDraws, kGradient),
        deep_gradients_(kDraws * pair.dim, kGradient),
        wide_rows_(kDraws),
        deep_rows_(kDraws * pair.dim) {
    std::vector<TableSpec> specs(2);
    specs[0].name = "wide";
    specs[0].dim = 1;
    specs[0].optimizer.record = &RecordOf(OptimizerKind::kFtrl);
    specs[1].name = "deep";
    specs[1].dim = pair.dim;
    specs[1].optimizer.record = &RecordOf(pair.rule);
    specs[1].init = {InitKind::kNormal, 0.01f};
    const uint32_t groups[] = {0, joined ? 0u : 1u};
    for (uint32_t s = 0; s < kShards; ++s) {
      shards_.push_back(TableSlice::OfTables(specs, groups, 1, {ShardId{s}, kShards, nullptr}));
    }
  }

  void Pull(Executor& executor, const StepKeys& request) {
    executor.ParallelFor(kShards, [&](size_t s) {
      const auto [begin, keys] = Own(request, s);
      std::vector<TableSlice>& tables = shards_[s];
      const TableSlice::JoinedRead reads[] = {
          {&tables[0], 1, std::span(wide_rows_).subspan(begin, keys.size())},
          {&tables[1], dim_, std::span(deep_rows_).subspan(begin * dim_, keys.size() * dim_)}};
      if (joined_) return TableSlice::ReadJoined(keys, reads);
      for (const auto& [table, floats, rows] : reads) table->Read(keys, floats, rows);
    });
  }
  void Push(Executor& executor, const StepKeys& request) {
    ++step_;
    executor.ParallelFor(kShards, [&](size_t s) {
      const auto [begin, keys] = Own(request, s);
      std::vector<TableSlice>& tables = shards_[s];
      const TableSlice::Gradients wide{keys, std::span(wide_gradients_).first(keys.size()), 1};
      const TableSlice::Gradients deep{
          keys, std::span(deep_gradients_).subspan(begin * dim_, keys.size() * dim_), 1};
      const TableSlice::JoinedUpdate updates[] = {{&tables[0], {&wide, 1}},
                                                  {&tables[1], {&deep, 1}}};
      if (joined_) return TableSlice::ApplyJoined(updates, 1, step_);
      for (const auto& [table, parts] : updates) table->Apply(parts, 1, step_);
    });
  }
  double bytes() const {
    size_t bytes = 0;
    for (const auto& tables : shards_) bytes += tables[0].bytes() + tables[1].bytes();
    return static_cast<double>(bytes);
  }

 private:
  struct OwnKeys {
    size_t begin;
    std::span<const Key> keys;
  };
  static OwnKeys Own(const StepKeys& request, size_t s) {
    const size_t begin = request.shard_begin[s], end = request.shard_begin[s + 1];
    return {begin, std::span(request.keys).subspan(begin, end - begin)};
  }

  const bool joined_;
  const uint32_t dim_;
  std::vector<std::vector<TableSlice>> shards_;  // [shards][tables]
  std::vector<float> wide_gradients_, deep_gradients_, wide_rows_, deep_rows_;
  int64_t step_ = 0;
};

void RunPair(const BenchSetting& setting, Pair pair, BenchReport& report) {
  const std::string name = pair.name;
  if (!setting.Wants(name + "_1t") && !setting.Wants(name + "_2t")) return;
  if (setting.quick) pair.rows /= 5;
  PrintProgress(kBench, name + ": making the rows");
  WideAndDeep joined(pair, true), apart(pair, false);
  {
    const std::unique_ptr<Executor> executor = NewTbbExecutor(0);
    for (const StepKeys& keys : ByShard(AllKeys(pair.rows), kShards)) {
      joined.Push(*executor, keys);
      apart.Push(*executor, keys);
    }
  }
  const double rows = static_cast<double>(pair.rows);
  report.AddBeside(kBench, name, "bytes of both rows of a key", "B", {joined.bytes() / rows},
                   "apart", {apart.bytes() / rows});
  const KeyBatches requests = ByShard(ZipfLists(pair.rows, kZipf, kDraws, kRequests, 7), kShards);
  const double keys = static_cast<double>(CountKeys(requests));
  for (const int threads : {1, 2}) {
    const std::string own = name + "_" + std::to_string(threads) + "t";
    if (!setting.Wants(own)) continue;
    PrintProgress(kBench, own);
    const std::unique_ptr<Executor> executor = NewTbbExecutor(threads);
    using Work = void (WideAndDeep::*)(Executor&, const StepKeys&);
    const auto rate = [&](WideAndDeep& tables, Work work) {
      return keys / SecondsOf([&] {
               for (const StepKeys& request : requests) (tables.*work)(*executor, request);
             });
    };
    const auto samples =
        InterleavedSamples(setting.repeats, {[&] { return rate(joined, &WideAndDeep::Pull); },
                                             [&] { return rate(apart, &WideAndDeep::Pull); },
                                             [&] { return rate(joined, &WideAndDeep::Push); },
                                             [&] { return rate(apart, &WideAndDeep::Push); }});
    report.AddBeside(kBench, own, "pull of both", "keys/s", samples[0], "apart", samples[1]);
    report.AddBeside(kBench, own, "push of both", "keys/s", samples[2], "apart", samples[3]);
  }
}

}  // namespace

void RunTableJoined(const BenchSetting& setting, BenchReport& report) {
  for (const Pair& pair : kPairs) RunPair(setting, pair, report);
}

}  // namespace hdps
