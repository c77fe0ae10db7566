// Tests jobs in every parallel mode: the same training with any placement.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "common/platform/executor.h"
#include "tests/worker/role/small_job.h"
#include "tools/scoring/scoring.h"

namespace hdps {
namespace {

std::string Rows(uint64_t count, uint64_t seed) {
  return SmallRows(count, seed, [](Random& random, uint64_t) {
    const uint64_t a = random.Below(12);
    return std::pair(a, random.Below(30));
  });
}

// Shards of the layers of a small Wide&Deep model; empty: none is given.
struct Shards {
  std::string embeddings = {}, h1 = {}, h2 = {};
};

std::string Model(const Shards& shards) {
  const auto shard = [](const std::string& tuples) {
    return tuples.empty() ? "" : ", \"shard\": " + tuples;
  };
  return R"(model={"type": "graph", "dense_optimizer": {"kind": "adam", "learning_rate": 0.01},
      "tables": [{"name": "t", "dim": 4}, {"name": "w", "dim": 1}], "layers": [
      {"name": "wide", "kind": "embedding", "table": "w", "combine": "sum")" +
         shard(shards.embeddings) + R"(},
      {"name": "e", "kind": "embedding", "table": "t")" +
         shard(shards.embeddings) + R"(},
      {"name": "n", "kind": "numeric"},
      {"name": "all", "kind": "concat", "inputs": ["e", "n"]},
      {"name": "h1", "inputs": ["all"], "units": 16, "activation": "relu")" +
         shard(shards.h1) + R"(},
      {"name": "h2", "inputs": ["h1"], "units": 8, "activation": "tanh")" +
         shard(shards.h2) + R"(},
      {"name": "z", "inputs": ["h2"], "units": 1},
      {"name": "logit", "kind": "sum", "inputs": ["z", "wide"]}]})";
}

struct Outcome {
  std::string digest;
  double train_logloss = 0, eval_auc = 0, eval_logloss = 0;
};

const Overrides kAllreduce = {"parallel.dense_exchange=allreduce"};
const Overrides kHybrid = kAllreduce + Overrides{"parallel.parallel_mode=hybrid_parallel"};
const Overrides kSemiAuto = kAllreduce + Overrides{"parallel.parallel_mode=semi_auto_parallel"};

class StrategyJobTest : public SmallJobTest {
 protected:
  // 7 steps of 44 rows and one of 2 per epoch: in the last, some workers have no row.
  StrategyJobTest()
      : SmallJobTest({"train.batch_size=44", "train.epochs=7"}, Rows(310, 1), Rows(101, 2)) {}

  Outcome Train(const ClusterSize& cluster, const Overrides& overrides) {
    const nlohmann::json summary = Summary(cluster, overrides);
    if (summary.is_null()) return {};
    return {summary["digest"], summary["train_logloss"], summary["eval_auc"],
            summary["eval_logloss"]};
  }
};

// All modes agree within E1 after 50 steps and more, and each gives the same bits twice.
TEST_F(StrategyJobTest, EveryModeTrainsTheSame) {
  const Outcome alone = Train({1, 1}, {Model({}), "parallel.parallel_mode=stand_alone"});
  const std::map<std::string, Overrides> modes = {
      {"data parallel, servers", {Model({})}},
      {"data parallel, allreduce", kAllreduce + Overrides{Model({})}},
      {"optimizer parallel",
       kAllreduce +
           Overrides{Model({}), "parallel.enable_parallel_optimizer=true",
                     "parallel.parallel_optimizer_config={\"parallel_optimizer_threshold\":0}"}},
      {"hybrid, columns", kHybrid + Overrides{Model({.h1 = "[1, 4]"})}},
      {"semi-automatic, rows", kSemiAuto + Overrides{Model({.h1 = "[4, 1]"})}},
      {"semi-automatic, columns", kSemiAuto + Overrides{Model({.h1 = "[1, 4]", .h2 = "[1, 2]"})}},
      {"semi-automatic, both",
       kSemiAuto + Overrides{Model({.h1 = "[[1, 2], [2, 2]]", .h2 = "[[2, 2], [2, 1]]"})}},
      {"two copies, columns then rows",
       kSemiAuto + Overrides{Model({.h1 = "[1, 4]", .h2 = "[4, 1]"}), "parallel.interleave_num=2"}},
      {"micro-batches, columns",
       kSemiAuto + Overrides{Model({.h1 = "[1, 4]"}), "train.micro_batches=3"}},
      {"automatic", kAllreduce + Overrides{Model({}), "parallel.parallel_mode=auto_parallel"}},
  };
  for (const auto& [name, overrides] : modes) {
    const Outcome once = Train({4, 2}, overrides);
    EXPECT_NEAR(once.train_logloss, alone.train_logloss, 1e-6) << name;
    EXPECT_NEAR(once.eval_logloss, alone.eval_logloss, 2e-6) << name;
    EXPECT_EQ(Train({4, 2}, overrides).digest, once.digest) << name;
    printf("%-32s loss %.9f (%+.1e)\n", name.c_str(), once.train_logloss,
           once.train_logloss - alone.train_logloss);
  }
}

// The norm of all gradients, of which ranks have slices and copies.
TEST_F(StrategyJobTest, ClippingTakesTheNormOfAllSlices) {
  const Overrides clip = {"train.clip_norm=0.05"};
  const Outcome alone = Train({1, 1}, clip + Overrides{Model({})});
  EXPECT_GT(std::abs(alone.train_logloss - Train({1, 1}, {Model({})}).train_logloss), 1e-4);
  const std::string models[] = {Model({.h1 = "[1, 4]", .h2 = "[4, 1]"}),
                                Model({.h1 = "[[1, 2], [2, 1]]", .h2 = "[[2, 1], [1, 1]]"})};
  for (const std::string& model : models) {
    const Outcome cut = Train({4, 2}, kHybrid + clip + Overrides{model});
    EXPECT_NEAR(cut.train_logloss, alone.train_logloss, 1e-6);
    EXPECT_NEAR(cut.eval_logloss, alone.eval_logloss, 2e-6);
  }
}

// Two workers, each with one of the two features of all rows.
TEST_F(StrategyJobTest, EmbeddingsByFeatures) {
  const Outcome alone = Train({1, 1}, {Model({})});
  const Overrides by_features = kHybrid + Overrides{Model({.embeddings = "[1, 2]"})};
  const Outcome once = Train({2, 2}, by_features);
  EXPECT_NEAR(once.train_logloss, alone.train_logloss, 1e-6);
  EXPECT_EQ(Train({2, 3}, by_features).digest, once.digest);
  const Outcome more =
      Train({2, 1}, kSemiAuto + Overrides{Model({.embeddings = "[1, 2]", .h1 = "[2, 1]"}),
                                          "parallel.interleave_num=2"});
  EXPECT_NEAR(more.train_logloss, alone.train_logloss, 1e-6);
}

// A checkpoint of any strategy continues with any other, like an uninterrupted run.
TEST_F(StrategyJobTest, CheckpointsLoadUnderAnyStrategy) {
  const Overrides columns = kHybrid + Overrides{Model({.h1 = "[1, 4]", .h2 = "[1, 2]"})};
  const Overrides plain = kAllreduce + Overrides{Model({})};
  const Overrides rows = kSemiAuto + Overrides{Model({.h1 = "[4, 1]"})};
  const Outcome through = Train({4, 2}, plain);
  const std::vector<std::pair<Overrides, Overrides>> changes = {
      {columns, plain}, {plain, columns}, {rows, columns}};
  for (const auto& [first, second] : changes) {
    Train({4, 2}, first + Overrides{"train.max_steps=20"});
    const std::string folder = out();
    const nlohmann::json summary = SummaryInto(folder, {4, 1}, second);
    ASSERT_FALSE(summary.is_null());
    EXPECT_EQ(summary["steps"], 56);
    EXPECT_NEAR(summary["eval_logloss"].get<double>(), through.eval_logloss, 2e-6);
  }
}

// Scores of a checkpoint on `workers`, with the strategy in `overrides`.
class ScoringTest : public StrategyJobTest {
 protected:
  std::vector<double> Predictions(uint32_t workers, const Overrides& overrides) {
    std::ostringstream text;
    const Status status = RunPredict(Flags(workers, overrides), *files_, *executor_, text);
    EXPECT_TRUE(status.ok()) << status.message();
    std::istringstream lines(text.str());
    return {std::istream_iterator<double>(lines), std::istream_iterator<double>()};
  }
  std::string Evaluation(uint32_t workers, const Overrides& overrides, bool dry_run = false) {
    std::ostringstream text;
    CommonFlags flags = Flags(workers, overrides);
    flags.dry_run = dry_run;
    const Status status = RunEvaluate(flags, *files_, *executor_, text);
    EXPECT_TRUE(status.ok()) << status.message();
    return text.str();
  }

 private:
  CommonFlags Flags(uint32_t workers, const Overrides& overrides) {
    CommonFlags flags;
    flags.job = "job.json";
    flags.overrides = Overrides{"train.batch_size=44", "train.epochs=7"} + overrides;
    flags.checkpoint = out();
    flags.workers = workers;
    return flags;
  }

  const std::unique_ptr<Executor> executor_ = NewTbbExecutor(2);
};

double LogitOf(double probability) { return std::log(probability / (1 - probability)); }

// Trained on 4 workers with one strategy, scored on 1, 2, 3 and 4 with others: logits within 1e-6,
// and figures equal to 6 digits.
TEST_F(ScoringTest, OtherWorkersOtherStrategiesTheSameScores) {
  Train({4, 2}, kSemiAuto + Overrides{Model({.h1 = "[[1, 2], [2, 2]]"})});
  const Overrides plain = kAllreduce + Overrides{Model({})};
  const std::vector<double> one = Predictions(1, plain);
  ASSERT_EQ(one.size(), 101u);
  const std::string figures = Evaluation(1, plain);
  const std::pair<uint32_t, Overrides> ways[] = {
      {2, kHybrid + Overrides{Model({.embeddings = "[1, 2]", .h1 = "[2, 1]"})}},
      {3, kSemiAuto + Overrides{Model({.h1 = "[1, 3]", .h2 = "[3, 1]"})}},
      {3, plain},
      {4, kSemiAuto + Overrides{Model({.h1 = "[1, 4]", .h2 = "[2, 2]"})}},
  };
  double apart = 0;
  for (const auto& [workers, overrides] : ways) {
    const std::vector<double> found = Predictions(workers, overrides);
    ASSERT_EQ(found.size(), one.size());
    for (size_t i = 0; i < one.size(); ++i) {
      apart = std::max(apart, std::abs(LogitOf(found[i]) - LogitOf(one[i])));
    }
    EXPECT_EQ(Evaluation(workers, overrides), figures) << workers << " workers";
  }
  EXPECT_LT(apart, 1e-6);
  printf("logits %.1e apart at most\n%s", apart, figures.c_str());
  const std::string held =
      Evaluation(2, kHybrid + Overrides{Model({.embeddings = "[1, 2]", .h1 = "[2, 1]"})}, true);
  EXPECT_NE(held.find("worker 1: "), std::string::npos) << held;
  EXPECT_NE(held.find("h1.weight rows"), std::string::npos) << held;
  EXPECT_NE(held.find("e of b"), std::string::npos) << held;
  EXPECT_NE(held.find("table t: "), std::string::npos) << held;
}

// A saved strategy is loaded instead of being planned.
TEST_F(StrategyJobTest, AKeptStrategyIsLoaded) {
  const std::string file = out() + "kept.strategy";
  const Overrides planned =
      kSemiAuto + Overrides{Model({.h1 = "[1, 4]"}), "parallel.strategy_ckpt_save_file=" + file};
  const Outcome first = Train({4, 1}, planned);
  const Outcome loaded =
      Train({4, 1}, kSemiAuto + Overrides{Model({}), "parallel.strategy_ckpt_load_file=" + file});
  EXPECT_EQ(loaded.digest, first.digest);
  // It is refused for another number of workers, with both numbers.
  const std::string why =
      Refusal({2, 1}, kSemiAuto + Overrides{Model({}), "parallel.strategy_ckpt_load_file=" + file});
  EXPECT_NE(why.find("4 workers, and there are 2"), std::string::npos) << why;
}

TEST_F(StrategyJobTest, WhatCannotBeCutIsRefused) {
  const std::pair<Overrides, std::string> mistakes[] = {
      {kHybrid + Overrides{Model({.h1 = "[1, 4]"}), "model.dense_optimizer.kind=lamb"}, "lamb"},
      {kHybrid + Overrides{Model({.h1 = "[1, 4]"}), "parallel.gradients_mean=false"},
       "gradients_mean"},
      {kHybrid + Overrides{Model({.embeddings = "[1, 4]"})}, "features"},
      {kHybrid + Overrides{Model({.h2 = "[1, 16]"})}, "16"},
  };
  for (const auto& [overrides, word] : mistakes) {
    const std::string why = Refusal({4, 1}, overrides);
    EXPECT_NE(why.find(word), std::string::npos) << why;
  }
}

}  // namespace
}  // namespace hdps
