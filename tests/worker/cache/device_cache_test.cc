// Whole jobs with rows kept at the workers: nothing of the result may change.
#include <glog/logging.h>
#include <gtest/gtest.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "common/platform/executor.h"
#include "common/platform/file_system.h"
#include "common/platform/random.h"
#include "tools/local_cluster.h"
#include "tools/synthetic/zipf.h"

namespace hdps {
namespace {

constexpr char kJob[] = R"({
  "name": "kept",
  "data": {"format": "csv", "shuffle_rows": 0, "train": ["train.csv"], "eval": ["eval.csv"],
           "columns": [{"name": "y", "type": "label"}, {"name": "x", "type": "numeric"},
                       {"name": "a"}, {"name": "b", "type": "multi"}]},
  "model": {"type": "wide_deep", "embedding_dim": 4, "hidden": [8, 4]},
  "train": {"batch_size": 20, "epochs": 2, "cache_refresh_steps": 3},
  "parallel": {"gradients_mean": true},
  "cluster": {"shards": 8}
})";

// Skewed keys, of which those in the second half are others: what is hot changes on the way. 330
// rows: the last step of an epoch has 10 of 20.
std::string Rows(uint64_t count, uint64_t seed) {
  Random random(seed);
  const Zipf zipf(60, 1.1);
  std::string text;
  for (uint64_t i = 0; i < count; ++i) {
    const uint64_t a = zipf.Draw(random), b = zipf.Draw(random) + (i < count / 2 ? 0 : 40);
    const bool label = random.Unit() < (a % 3 == 0 ? 0.8 : 0.2);
    text += std::to_string(label ? 1 : 0) + "," + std::to_string(random.Unit()) + ",a" +
            std::to_string(a) + ",b" + std::to_string(b) + (b % 2 == 0 ? "|c" : "") + "\n";
  }
  return text;
}

struct Cluster {
  uint32_t workers = 1, servers = 1;
};

using Overrides = std::vector<std::string>;
Overrides operator+(Overrides a, const Overrides& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}
const Overrides kKept = {"model.vocab_cache_size=20"};

class DeviceCacheTest : public testing::Test {
 protected:
  DeviceCacheTest() : files_(NewMemoryFileSystem()), clock_(NewSystemClock()) {
    FLAGS_minloglevel = google::GLOG_ERROR;
    EXPECT_TRUE(WriteFileAtomically(*files_, "job.json", kJob).ok());
    EXPECT_TRUE(WriteFileAtomically(*files_, "train.csv", Rows(330, 1)).ok());
    EXPECT_TRUE(WriteFileAtomically(*files_, "eval.csv", Rows(101, 2)).ok());
  }

  nlohmann::json TrainInto(const std::string& out, const Cluster& cluster,
                           const Overrides& overrides) {
    Result<Job> job = LoadJob(*files_, "job.json", overrides);
    EXPECT_TRUE(job.ok()) << job.status().message();
    if (!job.ok()) return {};
    LocalClusterOptions options;
    options.job = std::make_shared<const Job>(*std::move(job));
    options.out = out;
    options.num_workers = cluster.workers;
    options.num_servers = cluster.servers;
    options.threads = 2;
    options.voice.notice = [](const std::string&) {};
    const Result<ProcessEnd> exit = RunLocalCluster(options, *files_, *clock_);
    EXPECT_TRUE(exit.ok()) << exit.status().message();
    if (!exit.ok()) return {};
    EXPECT_EQ(exit->status, 0) << exit->reason;
    const Result<std::string> text = ReadWholeFile(*files_, JoinPath(out, "summary.json"), 1 << 20);
    EXPECT_TRUE(text.ok()) << text.status().message();
    return text.ok() ? nlohmann::json::parse(*text) : nlohmann::json();
  }
  nlohmann::json Train(const Cluster& cluster, const Overrides& overrides) {
    return TrainInto("out" + std::to_string(++runs_), cluster, overrides);
  }

  const std::unique_ptr<FileSystem> files_;
  const std::unique_ptr<MonotonicClock> clock_;
  int runs_ = 0;
};

TEST_F(DeviceCacheTest, KeptRowsChangeNothingWhateverTheCluster) {
  for (const uint32_t workers : {1, 2, 4}) {
    const auto off = Train({workers, 1}, {});
    EXPECT_TRUE(off["cache"].is_null());
    for (const uint32_t servers : {1, 3}) {
      // Rows of coming steps are on their way when others are chosen.
      const std::string lookahead = std::to_string(workers == 1 ? 0 : workers * servers % 5);
      const auto on = Train({workers, servers}, kKept + Overrides{"train.lookahead=" + lookahead});
      EXPECT_EQ(on["digest"], off["digest"])
          << workers << " workers, " << servers << " servers, lookahead " << lookahead;
      EXPECT_EQ(on["train_logloss"], off["train_logloss"]);
      EXPECT_EQ(on["eval_auc"], off["eval_auc"]);
      EXPECT_EQ(on["rows"], off["rows"]);
      EXPECT_GT(on["cache"]["hit_rate"], 0.3);
      // More came in than there is room for, so some went back to the servers. One group of tables:
      // a row of 4 weights and their Adam, one of 1 and its FTRL.
      EXPECT_GT(on["cache"]["swaps"], 23 * workers);
      EXPECT_EQ(on["cache"]["bytes"], 20 * (12 + 3) * 4 * workers);
    }
  }
}

TEST_F(DeviceCacheTest, NorDoesWhatElseTheJobSays) {
  std::vector<Overrides> variants = {
      {"parallel.gradients_mean=false"},
      {"parallel.cross_batch=true"},
      {"parallel.dataset_strategy=full_batch"},
      {"parallel.dense_exchange=allreduce"},
      {"train.micro_batches=3"},
      {"model.deep_optimizer.kind=adamw", "model.deep_optimizer.weight_decay=0.1"},
      // The last step of an epoch has a row for one worker only.
      {"train.batch_size=47", "data.max_bad_rows=0"}};
  for (const OptimizerRecord& optimizer : kOptimizers) {
    if (optimizer.whole_tensors) continue;
    const std::string kind = std::string("_optimizer.kind=") + optimizer.name;
    variants.push_back({"model.deep" + kind, "model.wide" + kind});
  }
  for (const Overrides& variant : variants) {
    const auto off = Train({3, 2}, variant);
    EXPECT_EQ(Train({3, 2}, variant + kKept)["digest"], off["digest"]) << variant[0];
  }
}

TEST_F(DeviceCacheTest, OneWorkerWithPartsIsAsManyWorkers) {
  const Overrides parts = {"train.micro_batches=3"};
  const auto off = Train({3, 1}, {});
  EXPECT_EQ(Train({1, 1}, parts + kKept)["digest"], off["digest"]);
  EXPECT_EQ(Train({3, 1}, kKept)["digest"], off["digest"]);
}

TEST_F(DeviceCacheTest, EveryTableMayKeepItsOwnNumberOfRows) {
  const Job job = *LoadJob(*files_, "job.json", {});
  ASSERT_TRUE(WriteFileAtomically(*files_, "job.json", PrintJob(job)).ok());  // Spelled out.
  const auto off = Train({2, 2}, {});
  for (const Overrides& kept :
       {Overrides{"model.tables.0.vocab_cache_size=7"},
        Overrides{"model.tables.1.vocab_cache_size=1"},
        Overrides{"model.tables.0.vocab_cache_size=500", "model.tables.1.vocab_cache_size=9"}}) {
    EXPECT_EQ(Train({2, 2}, kept)["digest"], off["digest"]) << kept[0];
  }
}

TEST_F(DeviceCacheTest, ARunMayStopAndGoOnWithOrWithoutThem) {
  const auto straight = Train({2, 2}, {"checkpoint.every_steps=4"});
  TrainInto("stopped", {2, 2}, kKept + Overrides{"train.max_steps=5"});
  const auto on = TrainInto("stopped", {2, 3}, kKept + Overrides{"checkpoint.every_steps=4"});
  EXPECT_EQ(on["resumed_from"], 5);
  EXPECT_EQ(on["digest"], straight["digest"]);
  TrainInto("other", {2, 1}, kKept + Overrides{"train.max_steps=8"});
  EXPECT_EQ(TrainInto("other", {2, 2}, {})["digest"], straight["digest"]);
}

}  // namespace
}  // namespace hdps
