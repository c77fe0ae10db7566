// Measures dense gradients between two workers on this machine: many small tensors fused or one by
// one, sums overlapped with the backward pass, and the update whole or split.
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "benchmarks/bench.h"
#include "common/job/job_file.h"
#include "common/job/spec/table_spec.h"
#include "common/platform/executor.h"
#include "common/platform/monotonic_clock.h"
#include "common/platform/threads/pause.h"
#include "common/protocol/membership_messages.h"
#include "worker/collective/collective.h"
#include "worker/collective/rank_transport.h"
#include "worker/dense/dense_reduction.h"

namespace hdps {
namespace {

constexpr char kBench[] = "dense_exchange";
constexpr uint32_t kRanks = 2;

// Returns an MLP of dense layers with `units` units, each with a matrix and a bias.
Result<Job> MlpOf(uint32_t layers, uint32_t units, const std::vector<std::string>& overrides) {
  std::string text = R"({"data": {"format": "criteo", "train": ["unread"]},
      "parallel": {"dense_exchange": "allreduce"},
      "model": {"type": "graph", "tables": [{"name": "t", "dim": 1}], "layers": [
        {"name": "e", "kind": "embedding", "table": "t", "combine": "sum"})";
  std::string below = "e";
  for (uint32_t l = 0; l < layers; ++l) {
    const std::string name = "d" + std::to_string(l);
    text += R"(, {"name": ")" + name + R"(", "inputs": [")" + below + R"("], "units": )" +
            std::to_string(l + 1 < layers ? units : 1) + "}";
    below = name;
  }
  return ParseJob(text + "]}}", kBench, overrides);
}

// State of one rank, and its part of a step.
struct Rank {
  std::unique_ptr<Collective> group;
  std::unique_ptr<CollectiveQueue> queue;
  std::unique_ptr<DenseReduction> reduction;
};

// A group whose sums take longer, as over a slow link.
class SlowLink : public Collective {
 public:
  SlowLink(std::unique_ptr<Collective> group, int64_t delay_ms)
      : group_(std::move(group)), delay_ms_(delay_ms) {}
  uint32_t rank() const override { return group_->rank(); }
  uint32_t size() const override { return group_->size(); }
  const char* name() const override { return group_->name(); }
  Status AllReduce(std::span<const ReducedValues> lists) override {
    pause_.For(delay_ms_);
    return group_->AllReduce(lists);
  }
  Status ReduceScatter(const ReducedValues& values, std::span<const size_t> counts,
                       void* mine) override {
    return group_->ReduceScatter(values, counts, mine);
  }
  Status Broadcast(uint32_t root, std::span<std::byte> data, MemorySpace space) override {
    return group_->Broadcast(root, data, space);
  }
  Status AllGather(std::span<const std::byte> mine, std::span<const size_t> sizes,
                   std::span<std::byte> all, MemorySpace space) override {
    return group_->AllGather(mine, sizes, all, space);
  }
  Status Exchange(std::span<const RankBytes> sends, std::span<const RankBytes> receives) override {
    return group_->Exchange(sends, receives);
  }
  Status Barrier() override { return group_->Barrier(); }
  Result<std::unique_ptr<Collective>> Split(uint32_t part) override { return group_->Split(part); }
  void Abort() override { group_->Abort(); }
  CollectiveCounts counts() const override { return group_->counts(); }

 private:
  const std::unique_ptr<Collective> group_;
  const int64_t delay_ms_;
  Pause pause_;
};

// Two ranks as threads, with Gloo on loopback.
class Pair {
 public:
  explicit Pair(const Job& job) : job_(job) {}

  Status Open(const std::string& name, int64_t delay_ms, bool beside) {
    HDPS_ASSIGN_OR_RETURN(model_, NewModel(job_, *executor_));
    std::vector<Status> status(kRanks);
    OnRanks([&](uint32_t r) { status[r] = OpenRank(name, r, delay_ms, beside); });
    for (const Status& one : status) HDPS_RETURN_IF_ERROR(one);
    return Status();
  }

  // Runs a step of both ranks; the gradient of a tensor takes `compute_ms`.
  Status Step(int64_t compute_ms) {
    std::vector<Status> status(kRanks);
    OnRanks([&](uint32_t r) { status[r] = StepOf(ranks_[r], compute_ms); });
    for (const Status& one : status) HDPS_RETURN_IF_ERROR(one);
    return Status();
  }
  size_t num_tensors() const { return model_->tensors().size(); }

 private:
  static void OnRanks(const std::function<void(uint32_t)>& body) {
    const std::unique_ptr<Thread> other = StartThread("rank", [&body] { body(1); });
    body(0);
    other->Join();
  }

  Status OpenRank(const std::string& name, uint32_t r, int64_t delay_ms, bool beside) {
    const CollectiveOptions options = {.rank = r, .size = kRanks, .group = name};
    HDPS_ASSIGN_OR_RETURN(std::unique_ptr<Collective> group,
                          NewCollective("gloo", options, *store_));
    Rank& rank = ranks_[r];
    rank.group = std::make_unique<SlowLink>(std::move(group), delay_ms);
    if (beside) rank.queue = std::make_unique<CollectiveQueue>(*rank.group, *clock_);
    rank.reduction = std::make_unique<DenseReduction>(
        job_, *model_, static_cast<int>(job_.tables.size() - 1), *executor_);
    rank.reduction->set_group(
        {{rank.group.get(), rank.group.get(), nullptr}, nullptr, nullptr, rank.queue.get()});
    return Status();
  }

  Status StepOf(Rank& rank, int64_t compute_ms) const {
    rank.reduction->Begin({.vote = {1, false}, .workers = kRanks});
    Pause computing;
    for (auto t = static_cast<uint32_t>(model_->tensors().size()); t-- > 0;) {
      if (compute_ms > 0) computing.For(compute_ms);
      rank.reduction->TensorDone(t, /*stay=*/false);
    }
    return rank.reduction->Finish().status();
  }

  const Job job_;
  const std::unique_ptr<MonotonicClock> clock_ = NewSystemClock();
  const std::unique_ptr<Executor> executor_ = NewInlineExecutor();
  std::unique_ptr<Model> model_;
  const std::unique_ptr<RendezvousStore> store_ = NewMemoryStore();
  Rank ranks_[kRanks];
};

// Measures 200 tensors of 4 KiB, with padding.
Status RunFusion(const BenchSetting& setting, BenchReport& report) {
  const std::string name = "200_tensors_4KiB";
  if (!setting.Wants(name)) return Status();
  PrintProgress(kBench, name);
  HDPS_ASSIGN_OR_RETURN(const Job together, MlpOf(100, 32, {}));
  HDPS_ASSIGN_OR_RETURN(const Job alone, MlpOf(100, 32, {"parallel.comm_fusion.openstate=false"}));
  Pair fused(together), each(alone);
  HDPS_RETURN_IF_ERROR(fused.Open("fused", 0, false));
  HDPS_RETURN_IF_ERROR(each.Open("each", 0, false));
  if (fused.num_tensors() != 200) return Status(Code::kCorruption, "not 200 tensors");
  const int steps = setting.quick ? 10 : 50;
  Status status;
  const auto run = [&](Pair& pair) {
    return steps / SecondsOf([&] {
             for (int s = 0; s < steps && status.ok(); ++s) status = pair.Step(0);
           });
  };
  run(fused);
  run(each);
  const auto samples =
      InterleavedSamples(setting.repeats, {[&] { return run(fused); }, [&] { return run(each); }});
  HDPS_RETURN_IF_ERROR(status);
  report.AddBeside(kBench, name, "fused", "steps/s", samples[0], "one by one", samples[1]);
  return Status();
}

// Measures eight tensors of four layers, with a bucket per layer; a sum takes as long as a layer's
// gradients.
Status RunHiding(const BenchSetting& setting, BenchReport& report) {
  const std::string name = "hidden_under_backward";
  if (!setting.Wants(name)) return Status();
  PrintProgress(kBench, name);
  HDPS_ASSIGN_OR_RETURN(const Job job,
                        MlpOf(8, 32, {"parallel.all_reduce_fusion_config=[2,4,6,8,10,12,14]"}));
  constexpr int64_t kTensorMs = 2, kSumMs = 4;
  constexpr double kSums = 8;
  Pair beside(job), after(job);
  HDPS_RETURN_IF_ERROR(beside.Open("beside", kSumMs, true));
  HDPS_RETURN_IF_ERROR(after.Open("after", kSumMs, false));
  Status status;
  const auto run = [&](Pair& pair) {
    return 1e3 * SecondsOf([&] { status = status.ok() ? pair.Step(kTensorMs) : status; });
  };
  run(beside);
  run(after);
  const auto samples = InterleavedSamples(
      setting.repeats, {[&] { return run(beside); }, [&] { return run(after); }});
  HDPS_RETURN_IF_ERROR(status);
  report.AddBeside(kBench, name, "beside", "ms/step", samples[0], "behind", samples[1]);
  std::vector<double> hidden;
  for (size_t i = 0; i < samples[0].size(); ++i) {
    hidden.push_back(100 * (samples[1][i] - samples[0][i]) / (kSums * kSumMs));
  }
  report.Add(kBench, name, "hidden of the sums", "%", hidden);
  return Status();
}

// Measures Adam over 16 MiB of parameters: all of them, and the part of one of four workers.
Status RunUpdate(const BenchSetting& setting, BenchReport& report) {
  const std::string name = "update_split_by_4";
  if (!setting.Wants(name)) return Status();
  PrintProgress(kBench, name);
  HDPS_ASSIGN_OR_RETURN(const Job job, MlpOf(setting.quick ? 3 : 18, 512,
                                             {"parallel.enable_parallel_optimizer=true"}));
  const std::unique_ptr<Executor> executor = NewInlineExecutor();
  HDPS_ASSIGN_OR_RETURN(const std::unique_ptr<Model> model, NewModel(job, *executor));
  const TableId table = {static_cast<uint32_t>(job.tables.size() - 1)};
  HostDenseState whole(job.tables.back(), table, 1, DenseKeys(model->tensors()));
  HostDenseState part(job.tables.back(), table, 1,
                      DenseShards(job, model->tensors(), 0, 4).OwnKeys());
  const auto run = [&](HostDenseState& state) {
    std::vector<float> gradients(state.keys().size() * kDenseChunkFloats, 0x1p-10f);
    return 1e3 * SecondsOf([&] { state.Apply(*executor, std::span(gradients), {}); });
  };
  run(whole);
  run(part);
  const auto samples =
      InterleavedSamples(setting.repeats, {[&] { return run(part); }, [&] { return run(whole); }});
  report.AddBeside(kBench, name, "part", "ms", samples[0], "whole", samples[1]);
  const auto bytes = [](const DenseState& state) {
    return static_cast<double>(state.state_bytes());
  };
  report.AddBeside(kBench, name, "state", "bytes", {bytes(part)}, "whole", {bytes(whole)});
  return Status();
}

}  // namespace

Status RunDenseExchangeBench(const BenchSetting& setting, FileSystem&, BenchReport& report) {
  HDPS_RETURN_IF_ERROR(RunFusion(setting, report));
  HDPS_RETURN_IF_ERROR(RunHiding(setting, report));
  return RunUpdate(setting, report);
}

}  // namespace hdps
