// Runs the same work on as many threads as workers; the time of all is the time of each.
#include "benchmarks/cases/shared_rates.h"

#include <algorithm>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "benchmarks/clusters/row_cluster.h"
#include "benchmarks/clusters/row_load.h"
#include "benchmarks/yardsticks/model_products.h"
#include "common/job/spec/cluster_spec.h"
#include "common/job/spec/table_spec.h"
#include "common/job/spec/train_spec.h"
#include "common/platform/executor.h"
#include "tools/plan/job_shape.h"
#include "worker/collective/collective.h"
#include "worker/collective/rank_transport.h"
#include "worker/dense/dense_reduction.h"
#include "worker/model/model.h"

namespace hdps {
namespace {

using OfRank = std::function<Status(uint32_t)>;

// Returns the seconds until all ranks are done, or the error of the first rank that failed.
Result<double> SecondsOfRanks(uint32_t ranks, const OfRank& body) {
  std::vector<Status> status(ranks);
  const double seconds = SecondsOf([&] {
    std::vector<std::unique_ptr<Thread>> threads;
    for (uint32_t r = 0; r < ranks; ++r) {
      threads.push_back(StartThread("rank", [&, r] { status[r] = body(r); }));
    }
    for (const auto& thread : threads) thread->Join();
  });
  for (const Status& one : status) HDPS_RETURN_IF_ERROR(one);
  return seconds;
}

Result<double> FlopsPerSecond(const BenchSetting& setting, const Job& job, uint32_t workers) {
  HDPS_ASSIGN_OR_RETURN(const JobShape shape, ShapeOf(job));
  const size_t rows = job.train.batch_size / workers;
  std::vector<std::unique_ptr<ModelProducts>> products(workers);
  double flops = 0;
  for (const Product& product : shape.products) flops += product.flops();
  for (auto& one : products) {
    HDPS_ASSIGN_OR_RETURN(one, ModelProducts::Make("cpu", setting.threads, shape.products, rows));
    one->Step();
  }
  const int steps = setting.quick ? 10 : 40;
  HDPS_ASSIGN_OR_RETURN(const double seconds, SecondsOfRanks(workers, [&](uint32_t r) {
                          for (int s = 0; s < steps; ++s) products[r]->Step();
                          return Status();
                        }));
  constexpr double kPasses = 3;  // Forward and both gradients.
  return kPasses * flops * double(rows) * steps / seconds;
}

// Copies arrays as long as the values of a wide layer.
Result<double> MemoryBytesPerSecond(const BenchSetting& setting, uint32_t workers) {
  constexpr size_t kFloats = 1 << 17, kArrays = 8;
  std::vector<std::vector<std::vector<float>>> arrays(
      workers, std::vector<std::vector<float>>(kArrays, std::vector<float>(kFloats, 1)));
  const size_t passes = setting.quick ? 100 : 400;
  HDPS_ASSIGN_OR_RETURN(const double seconds, SecondsOfRanks(workers, [&](uint32_t r) {
                          for (size_t p = 0; p < passes; ++p) {
                            const std::vector<float>& from = arrays[r][p % kArrays];
                            std::vector<float>& to = arrays[r][(p + 1) % kArrays];
                            for (size_t i = 0; i < kFloats; ++i) to[i] = from[i] + 1;
                          }
                          return Status();
                        }));
  return 2.0 * sizeof(float) * kFloats * double(passes) / seconds;
}

Result<double> UpdateFloatSeconds(const BenchSetting& setting, const Job& job, uint32_t workers) {
  const std::unique_ptr<Executor> executor = NewTbbExecutor(setting.threads);
  HDPS_ASSIGN_OR_RETURN(const std::unique_ptr<Model> model, NewModel(job, *executor));
  const TableId table = {static_cast<uint32_t>(job.tables.size() - 1)};
  std::vector<std::unique_ptr<DenseState>> states;
  for (uint32_t r = 0; r < workers; ++r) {
    states.push_back(
        std::make_unique<HostDenseState>(job.tables.back(), table, 1, DenseKeys(model->tensors())));
  }
  const size_t floats = states[0]->keys().size() * kDenseChunkFloats;
  std::vector<float> gradients(floats, 0x1p-10f);
  const int updates = setting.quick ? 10 : 40;
  HDPS_ASSIGN_OR_RETURN(const double seconds, SecondsOfRanks(workers, [&](uint32_t r) {
                          for (int u = 0; u < updates; ++u) {
                            states[r]->Apply(*executor, std::span(gradients), {});
                          }
                          return Status();
                        }));
  return seconds / (double(updates) * double(floats));
}

// Returns the seconds of one of `num_rows` rows in one direction. The rule is the one that adds
// least to a push, because updates are measured alone.
Result<double> RowSeconds(const BenchSetting& setting, FileSystem& files, uint32_t workers,
                          uint32_t dim, uint64_t num_rows) {
  HDPS_ASSIGN_OR_RETURN(
      const std::unique_ptr<RowCluster> cluster,
      RowCluster::Start(setting, files,
                        {.job = RowsJob(dim, "sgd"), .workers = workers, .transport = "inproc"}));
  const KeyBatches lists = ByShard(AllKeys(num_rows), cluster->job().cluster.shards);
  std::vector<std::unique_ptr<RowWorker>> of_rank(workers);
  for (uint32_t r = 0; r < workers; ++r) {
    HDPS_ASSIGN_OR_RETURN(of_rank[r], RowWorker::Make(*cluster, r));
  }
  const auto pass = [&](size_t passes) {
    return SecondsOfRanks(workers, [&](uint32_t r) -> Status {
      for (size_t p = 0; p < passes; ++p) {
        HDPS_RETURN_IF_ERROR(of_rank[r]->PullAll(lists, 1));
        HDPS_RETURN_IF_ERROR(of_rank[r]->PushAll(lists, 1));
      }
      return {};
    });
  };
  HDPS_RETURN_IF_ERROR(pass(1).status());  // Creates the rows.
  const size_t passes = setting.quick ? 20 : 80;
  HDPS_ASSIGN_OR_RETURN(const double seconds, pass(passes));
  return seconds / (2.0 * double(passes) * double(num_rows));
}

// A group of all ranks in which each sends the same amount to every other.
class Ring {
 public:
  Status Open(uint32_t ranks, const std::string& name) {
    groups_.resize(ranks);
    return SecondsOfRanks(
               ranks,
               [&](uint32_t r) -> Status {
                 const CollectiveOptions options = {.rank = r, .size = ranks, .group = name};
                 HDPS_ASSIGN_OR_RETURN(groups_[r], NewCollective("gloo", options, *store_));
                 return {};
               })
        .status();
  }

  // Returns the seconds of one of `exchanges` exchanges with `bytes` to each other rank.
  Result<double> Seconds(size_t bytes, int exchanges) {
    const auto ranks = static_cast<uint32_t>(groups_.size());
    const auto body = [&](uint32_t r) -> Status {
      std::vector<std::vector<std::byte>> given(ranks, std::vector<std::byte>(bytes));
      std::vector<std::vector<std::byte>> taken = given;
      std::vector<RankBytes> sends, receives;
      for (uint32_t other = 0; other < ranks; ++other) {
        if (other == r) continue;
        sends.push_back({other, given[other].data(), bytes});
        receives.push_back({other, taken[other].data(), bytes});
      }
      for (int e = 0; e < exchanges; ++e) {
        HDPS_RETURN_IF_ERROR(groups_[r]->Exchange(sends, receives));
      }
      return {};
    };
    HDPS_ASSIGN_OR_RETURN(const double seconds, SecondsOfRanks(ranks, body));
    return seconds / exchanges;
  }

 private:
  const std::unique_ptr<RendezvousStore> store_ = NewMemoryStore();
  std::vector<std::unique_ptr<Collective>> groups_;
};

Status MeasureLink(const BenchSetting& setting, uint32_t workers, const std::string& name,
                   StepRates* rates) {
  Ring ring;
  HDPS_RETURN_IF_ERROR(ring.Open(workers, name));
  const int exchanges = setting.quick ? 20 : 100;
  constexpr size_t kFew = 64, kMany = 128 << 10;
  HDPS_RETURN_IF_ERROR(ring.Seconds(kMany, exchanges / 10).status());
  HDPS_ASSIGN_OR_RETURN(const double few, ring.Seconds(kFew, exchanges));
  HDPS_ASSIGN_OR_RETURN(const double many, ring.Seconds(kMany, exchanges));
  rates->exchange_seconds = few;
  if (many > few) {
    rates->link_bytes_per_second = double(kMany - kFew) * (workers - 1) / (many - few);
  } else {
    PrintProgress(name,
                  "128 KiB took no longer than 64 bytes: the link's rate is the built-in one");
  }
  return {};
}

}  // namespace

Result<StepRates> MeasureSharedRates(const BenchSetting& setting, FileSystem& files, const Job& job,
                                     uint32_t workers, const std::string& group) {
  StepRates rates;
  HDPS_ASSIGN_OR_RETURN(rates.flops_per_second, FlopsPerSecond(setting, job, workers));
  HDPS_ASSIGN_OR_RETURN(rates.memory_bytes_per_second, MemoryBytesPerSecond(setting, workers));
  HDPS_ASSIGN_OR_RETURN(rates.update_float_seconds, UpdateFloatSeconds(setting, job, workers));
  // Rows as long as the chunks of dense layers, and short ones.
  constexpr uint64_t kLongRows = 256, kShortRows = 4096;
  constexpr uint32_t kShort = 16;
  HDPS_ASSIGN_OR_RETURN(const double of_long,
                        RowSeconds(setting, files, workers, kDenseChunkFloats, kLongRows));
  HDPS_ASSIGN_OR_RETURN(const double of_short,
                        RowSeconds(setting, files, workers, kShort, kShortRows));
  rates.row_float_seconds = of_long / kDenseChunkFloats;
  rates.row_seconds = std::max(of_short - kShort * rates.row_float_seconds, 0.0);
  HDPS_RETURN_IF_ERROR(MeasureLink(setting, workers, group, &rates));
  return rates;
}

}  // namespace hdps
