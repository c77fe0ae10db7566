// Tests whole jobs in one process: what must not change the result, and what must.
#include <gtest/gtest.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "common/job/optimizers/optimizer_record.h"
#include "common/job/optimizers/optimizers.h"
#include "common/platform/executor.h"
#include "tests/worker/role/small_job.h"
#include "tools/scoring/scoring.h"

namespace hdps {
namespace {

// 310 rows in steps of 50: the last step of an epoch has 10.
std::string Rows(uint64_t count, uint64_t seed) {
  return SmallRows(count, seed, [](Random& random, uint64_t) {
    const uint64_t a = random.Below(12);
    return std::pair(a, random.Below(30));
  });
}

// Results of a run.
struct Outcome {
  std::string digest;
  double train_logloss = 0, eval_auc = 0, eval_logloss = 0;
  int64_t steps = 0;
};

class TrainingTest : public SmallJobTest {
 protected:
  TrainingTest() : SmallJobTest({}, Rows(310, 1), Rows(101, 2)) {}

  Outcome Train(const ClusterSize& cluster, const Overrides& overrides = {}) {
    const nlohmann::json summary = Summary(cluster, overrides);
    if (summary.is_null()) return {};
    return {summary["digest"], summary["train_logloss"], summary["eval_auc"],
            summary["eval_logloss"], summary["steps"]};
  }
};

TEST_F(TrainingTest, ServersDoNotChangeTheResult) {
  const Outcome one = Train({2, 1});
  EXPECT_EQ(one.steps, 14);
  EXPECT_EQ(Train({2, 2}).digest, one.digest);
  EXPECT_EQ(Train({2, 3}).digest, one.digest);
  EXPECT_NE(Train({2, 1}, {"seed=2"}).digest, one.digest);
}

TEST_F(TrainingTest, WorkersDoWhatOneDoesWithAsManyParts) {
  const Outcome whole = Train({1, 1});
  for (const uint32_t workers : {2, 3, 4}) {
    const Outcome together = Train({workers, 2});
    const Outcome parts = Train({1, 1}, {"train.micro_batches=" + std::to_string(workers)});
    EXPECT_EQ(together.digest, parts.digest) << workers << " workers";
    EXPECT_NEAR(together.train_logloss, whole.train_logloss, 1e-6) << workers << " workers";
  }
}

// Dropout depends on the position of a row in the step, in any part of it.
TEST_F(TrainingTest, DropoutAndLayerNormGoByTheRowsOfAStep) {
  const std::string model =
      R"(model={"type": "graph", "tables": [{"name": "t", "dim": 4}], "layers": [
          {"name": "e", "kind": "embedding", "table": "t"},
          {"name": "n", "kind": "numeric"},
          {"name": "all", "kind": "concat", "inputs": ["e", "n"]},
          {"name": "h", "inputs": ["all"], "units": 8, "activation": "gelu"},
          {"name": "norm", "kind": "layer_norm", "inputs": ["h"]},
          {"name": "drop", "kind": "dropout", "inputs": ["norm"], "rate": 0.3},
          {"name": "logit", "inputs": ["drop"], "units": 1}]})";
  const Outcome whole = Train({1, 1}, {model});
  EXPECT_EQ(Train({1, 2}, {model}).digest, whole.digest);
  for (const uint32_t workers : {2, 3, 4}) {
    const Outcome together = Train({workers, 2}, {model});
    const Outcome parts = Train({1, 1}, {model, "train.micro_batches=" + std::to_string(workers)});
    EXPECT_EQ(together.digest, parts.digest) << workers << " workers";
    EXPECT_NEAR(together.train_logloss, whole.train_logloss, 1e-6) << workers << " workers";
  }
  EXPECT_NE(Train({1, 1}, {model, "model.layers.5.rate=0.31"}).digest, whole.digest);
}

// Each part of a step is normalized by itself, and its statistics are combined in the order of the
// parts: by servers and by allreduce, for any number of servers and any rule of the weights.
TEST_F(TrainingTest, BatchNormOfPartsIsThatOfWorkers) {
  const Overrides model = {"model.batch_norm=true", "model.dropout=0.3",
                           "model.embedding_dropout=0.1"};
  const Outcome whole = Train({1, 1}, model);
  EXPECT_GT(whole.eval_auc, 0.6) << "evaluation takes the running statistics";
  EXPECT_NE(Train({1, 1}).digest, whole.digest);
  for (const Overrides& more : {Overrides{}, Overrides{"parallel.cross_batch=true"},
                                Overrides{"model.dense_optimizer.kind=lamb"}}) {
    for (const uint32_t workers : {2, 3}) {
      const std::string parts = "train.micro_batches=" + std::to_string(workers);
      const Outcome together = Train({workers, 1}, model + more);
      for (const uint32_t servers : {2, 4}) {
        EXPECT_EQ(Train({workers, servers}, model + more).digest, together.digest) << servers;
      }
      const Overrides allreduce = {"parallel.dense_exchange=allreduce"};
      EXPECT_EQ(Train({workers, 2}, model + more + allreduce).digest, together.digest);
      // With cross_batch a part is not a worker: the mean of the workers' means is another.
      if (!more.empty() && more[0] == "parallel.cross_batch=true") continue;
      EXPECT_EQ(Train({1, 2}, model + more + Overrides{parts}).digest, together.digest) << parts;
      EXPECT_NE(together.digest, whole.digest) << "statistics are those of a part";
    }
  }
}

// If the gradients of workers are summed, running statistics still move to their mean: with four
// workers and a momentum of 0.1 a sum would drive them apart in a few steps.
TEST_F(TrainingTest, RunningStatisticsAreMeansWhereGradientsAreSums) {
  const Overrides model = {
      R"(model={"type": "graph", "tables": [{"name": "t", "dim": 4}], "layers": [
          {"name": "e", "kind": "embedding", "table": "t"},
          {"name": "norm", "kind": "batch_norm", "inputs": ["e"], "momentum": 0.1},
          {"name": "logit", "inputs": ["norm"], "units": 1}]})",
      "parallel.gradients_mean=false"};
  const Outcome servers = Train({4, 2}, model);
  EXPECT_LT(servers.eval_logloss, 1);
  EXPECT_EQ(Train({4, 1}, model + Overrides{"parallel.dense_exchange=allreduce"}).digest,
            servers.digest);
}

// In sync, prefetched and repaired rows equal rows requested in time: for any depth, workers,
// servers, parts and way of the dense gradients.
TEST_F(TrainingTest, LookaheadDoesNotChangeTheResult) {
  for (const uint32_t workers : {1, 2, 4}) {
    const std::string parts = "train.micro_batches=" + std::to_string(1 + workers % 2);
    std::string digest;
    for (const uint32_t servers : {1, 2, 3}) {
      for (const uint32_t lookahead : {0, 1, 2, 4}) {
        const char* dense = (servers + lookahead / 2) % 2 == 0 ? "servers" : "allreduce";
        const Outcome run =
            Train({workers, servers}, {"train.lookahead=" + std::to_string(lookahead), parts,
                                       std::string("parallel.dense_exchange=") + dense});
        if (digest.empty()) digest = run.digest;
        EXPECT_EQ(run.digest, digest) << workers << " workers, " << servers << " servers, ahead "
                                      << lookahead << ", dense by " << dense;
      }
    }
  }
}

TEST_F(TrainingTest, DenseByAllreduceIsDenseByServers) {
  std::vector<std::vector<std::string>> variants = {
      {}, {"parallel.gradients_mean=false"}, {"parallel.cross_batch=true"}};
  for (const OptimizerRecord& optimizer : kOptimizers) {
    variants.push_back({std::string("model.dense_optimizer.kind=") + optimizer.name});
  }
  for (std::vector<std::string> overrides : variants) {
    const Outcome servers = Train({3, 2}, overrides);
    overrides.push_back("parallel.dense_exchange=allreduce");
    EXPECT_EQ(Train({3, 2}, overrides).digest, servers.digest) << overrides[0];
  }
}

// Values in 16 bits are rounded where they are sent: servers, their order, lookahead and waits
// change nothing, and the result differs from that in 32 bits.
TEST_F(TrainingTest, OnTheWireIn16BitsServersAndLookaheadDoNotChangeTheResult) {
  std::vector<std::string> digests;
  const Outcome whole = Train({3, 2});
  for (const char* format : {"fp16", "bf16"}) {
    const std::string wire = std::string("parallel.wire=") + format;
    const Outcome one = Train({3, 1}, {wire});
    for (const uint32_t servers : {1, 2, 3}) {
      const std::string ahead = "train.lookahead=" + std::to_string(servers + servers % 2 - 1);
      EXPECT_EQ(Train({3, servers}, {wire, ahead}).digest, one.digest)
          << format << ", " << servers << " servers, " << ahead;
      EXPECT_EQ(Train({3, servers}, {wire, "train.lookahead=0"}).digest, one.digest);
    }
    EXPECT_NE(one.digest, whole.digest);
    EXPECT_NEAR(one.train_logloss, whole.train_logloss, 2e-3) << format;
    EXPECT_EQ(Train({1, 2}, {wire, "train.mode=async"}).digest, Train({1, 1}, {wire}).digest);
    digests.push_back(one.digest);
  }
  EXPECT_NE(digests[0], digests[1]);
}

// A loss scale moves what fp16 rounds to zero, at any number of servers alike; bf16 needs none.
TEST_F(TrainingTest, ALossScaleChangesWhatFp16RoundsAndNothingElse) {
  const std::string wire = "parallel.wire=fp16";
  const Outcome plain = Train({3, 1}, {wire});
  for (const char* scale : {"train.loss_scale=1024", "train.loss_scale=dynamic"}) {
    const Outcome one = Train({3, 1}, {wire, scale});
    EXPECT_NE(one.digest, plain.digest) << scale;
    EXPECT_NEAR(one.train_logloss, plain.train_logloss, 2e-3) << scale;
    EXPECT_EQ(Train({3, 2}, {wire, scale, "train.lookahead=1"}).digest, one.digest) << scale;
    EXPECT_EQ(Train({3, 1}, {"parallel.wire=bf16", scale}).digest,
              Train({3, 1}, {"parallel.wire=bf16"}).digest);
  }
}

TEST_F(TrainingTest, CrossBatchShowsOnRaggedBatches) {
  // 50 rows over 3 workers: 17, 17, 16.
  EXPECT_NE(Train({3, 1}).digest, Train({3, 1}, {"parallel.cross_batch=true"}).digest);
  EXPECT_EQ(Train({2, 1}, {"train.max_steps=6"}).steps, 6);
}

TEST_F(TrainingTest, EvaluationByStepsChangesNoResult) {
  for (const char* way : {"parallel.dense_exchange=servers", "parallel.dense_exchange=allreduce"}) {
    const Outcome plain = Train({2, 2}, {way});
    const Outcome often = Train({2, 2}, {way, "train.eval_every_steps=3"});
    EXPECT_EQ(often.digest, plain.digest) << way;
    EXPECT_EQ(often.eval_auc, plain.eval_auc) << way;
    const Result<std::string> text =
        ReadWholeFile(*files_, JoinPath(out(), "metrics.jsonl"), 1 << 20);
    ASSERT_TRUE(text.ok()) << text.status().message();
    std::istringstream lines(*text);
    std::vector<int64_t> evaluated;
    for (std::string line; std::getline(lines, line);) {
      const auto metrics = nlohmann::json::parse(line);
      if (metrics.contains("eval_auc")) evaluated.push_back(metrics["step"]);
    }
    EXPECT_EQ(evaluated, (std::vector<int64_t>{3, 6, 7, 9, 12, 14})) << way;
  }
}

TEST_F(TrainingTest, StalenessZeroIsSyncAndSoIsOneAsyncWorker) {
  EXPECT_EQ(Train({2, 2}, {"train.mode=ssp", "train.staleness_bound=0"}).digest,
            Train({2, 2}).digest);
  EXPECT_EQ(Train({1, 2}, {"train.mode=async"}).digest, Train({1, 2}).digest);
}

TEST_F(TrainingTest, FullBatchOnOneWorkerIsTheBatch) {
  EXPECT_EQ(Train({1, 1}, {"parallel.dataset_strategy=full_batch"}).digest, Train({1, 1}).digest);
  // Two workers push the same gradients, whose mean is exactly the one gradient.
  EXPECT_EQ(Train({2, 1}, {"parallel.dataset_strategy=full_batch"}).digest, Train({1, 1}).digest);
}

TEST_F(TrainingTest, ADivergedLossEndsTheJobAndNamesTheStep) {
  for (const char* dense : {"servers", "allreduce"}) {
    const ProcessEnd exit =
        RunJob({2, 1}, {"model.dense_optimizer.kind=sgd", "model.dense_optimizer.learning_rate=1e6",
                        "model.hidden=[64,32]", "train.epochs=50",
                        std::string("parallel.dense_exchange=") + dense});
    EXPECT_EQ(exit.status, 3);
    EXPECT_NE(exit.reason.find("diverged"), std::string::npos) << exit.reason;
    EXPECT_NE(exit.reason.find("at step"), std::string::npos) << exit.reason;
  }
}

TEST_F(TrainingTest, ABadRowEndsTheJobAndNamesThePlace) {
  ASSERT_TRUE(WriteFileAtomically(*files_, "train.csv", Rows(120, 1) + "1,abc,a1,b1\n").ok());
  const ProcessEnd exit = RunJob({2, 1}, {});
  EXPECT_EQ(exit.status, 2);
  EXPECT_NE(exit.reason.find("train.csv:121:"), std::string::npos) << exit.reason;
  EXPECT_NE(exit.reason.find("abc"), std::string::npos) << exit.reason;
}

TEST_F(TrainingTest, EvaluateAndPredictAgreeWithTheRun) {
  const Outcome run = Train({2, 3});
  const std::unique_ptr<Executor> executor = NewTbbExecutor(2);
  CommonFlags options;
  options.job = "job.json";
  options.checkpoint = out();
  std::ostringstream evaluation, predictions;
  const Status evaluated = RunEvaluate(options, *files_, *executor, evaluation);
  ASSERT_TRUE(evaluated.ok()) << evaluated.message();
  const std::string text = evaluation.str();
  ASSERT_NE(text.find("auc"), std::string::npos) << text;
  EXPECT_NEAR(std::stod(text.substr(text.find("auc") + 3)), run.eval_auc, 1e-6);

  const Status predicted = RunPredict(options, *files_, *executor, predictions);
  ASSERT_TRUE(predicted.ok()) << predicted.message();
  std::istringstream lines(predictions.str());
  int rows = 0;
  for (double value = 0; lines >> value; ++rows) EXPECT_TRUE(value > 0 && value < 1) << value;
  EXPECT_EQ(rows, 101);

  options.overrides = {"seed=2"};
  const Status other = RunEvaluate(options, *files_, *executor, evaluation);
  EXPECT_EQ(other.code(), Code::kInvalidArgument);
  EXPECT_NE(other.message().find("seed is 2, the checkpoint's is 1"), std::string::npos)
      << other.message();
}

}  // namespace
}  // namespace hdps
