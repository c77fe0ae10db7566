// Tests jobs whose numeric columns and images are cut over the workers: each reads its part, and
// together they train what one worker does.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "common/job/job_file.h"
#include "common/job/job_spec.h"
#include "common/platform/executor.h"
#include "tests/worker/role/small_job.h"
#include "tools/scoring/checkpoint_model.h"
#include "tools/scoring/scoring.h"
#include "tools/synthetic/synthetic_digits.h"
#include "tools/synthetic/synthetic_job.h"

namespace hdps {
namespace {

const Overrides kHybrid = {"parallel.dense_exchange=allreduce",
                           "parallel.parallel_mode=hybrid_parallel"};

Overrides Sliced(const std::string& tuples) {
  return kHybrid + Overrides{"parallel.dataset_strategy=" + tuples};
}

// Weights and losses after 50 steps.
struct Trained {
  std::vector<float> dense;
  double train_loss = 0, eval_loss = 0;
};

class DatasetSlicesJobTest : public SmallJobTest {
 protected:
  DatasetSlicesJobTest() : SmallJobTest({"train.epochs=1"}, "", "") {}

  void Write(const std::string& path, const std::string& text) {
    ASSERT_TRUE(WriteFileAtomically(*files_, path, text).ok());
  }

  Trained Train(uint32_t workers, const Overrides& overrides) {
    const nlohmann::json summary = Summary({workers, 1}, overrides);
    if (summary.is_null()) return {};
    EXPECT_EQ(summary["steps"], 50);
    const auto job = LoadJob(*files_, "job.json", overrides);
    auto model = CheckpointModel::Load(*files_, *job, JoinPath(out(), "checkpoint"),
                                       WhichCheckpoint::kNewest, *executor_);
    EXPECT_TRUE(model.ok()) << model.status().message();
    if (!model.ok()) return {};
    return {(*model)->DenseWeights(), summary["train_logloss"], summary["eval_logloss"]};
  }

  // Expects E1: weights and losses at most 1e-6 apart.
  void ExpectSame(const Trained& found, const Trained& alone, const std::string& what) {
    ASSERT_EQ(found.dense.size(), alone.dense.size()) << what;
    float apart = 0;
    for (size_t i = 0; i < found.dense.size(); ++i) {
      apart = std::max(apart, std::abs(found.dense[i] - alone.dense[i]));
    }
    EXPECT_LE(apart, 1e-6f) << what;
    EXPECT_NEAR(found.train_loss, alone.train_loss, 1e-6) << what;
    EXPECT_NEAR(found.eval_loss, alone.eval_loss, 1e-6) << what;
    printf("%s: weights at most %.1e apart, loss %.9f (%+.1e)\n", what.c_str(), double{apart},
           found.train_loss, found.train_loss - alone.train_loss);
  }

  // Scores the checkpoint in out(), and returns what is printed.
  std::string Evaluation(uint32_t workers, const Overrides& overrides, bool dry_run = false) {
    std::ostringstream text;
    CommonFlags flags;
    flags.job = "job.json";
    flags.overrides = overrides;
    flags.checkpoint = out();
    flags.workers = workers;
    flags.dry_run = dry_run;
    const Status status = RunEvaluate(flags, *files_, *executor_, text);
    EXPECT_TRUE(status.ok()) << status.message();
    return text.str();
  }

  double LossOn(uint32_t workers, const Overrides& overrides) {
    const std::string text = Evaluation(workers, overrides), word = "logloss";
    const size_t at = text.find(word);
    EXPECT_NE(at, std::string::npos) << text;
    return at == std::string::npos ? 0 : std::stod(text.substr(at + word.size()));
  }

  const std::unique_ptr<Executor> executor_ = NewTbbExecutor(2);
};

// The pictures as images of two channels of 14 x 28 pixels: [n, c, h, w].
class SlicedImagesTest : public DatasetSlicesJobTest {
 protected:
  SlicedImagesTest() {
    SyntheticDigitsSpec spec;
    spec.rows = 50 * 32;
    spec.eval_rows = 101;
    spec.idx = true;
    EXPECT_TRUE(WriteSyntheticDigits(*files_, ".", spec).ok());
    for (const char* name : {"train", "eval"}) {
      const std::string path = DigitsFile(spec, name);
      const std::string images = *ReadWholeFile(*files_, path, 16 << 20);
      // The head of a file: magic number with the number of axes, and a length of each.
      std::string four = images.substr(0, 3) + '\x04' + images.substr(4, 4);
      for (const char length : {2, 14, 28}) four += std::string(3, '\0') + length;
      Write(path, four + images.substr(16));
    }
    nlohmann::json job = nlohmann::json::parse(JobOfDigits(spec));
    job["data"]["image_shape"] = {2, 14, 28};
    job["model"]["hidden"] = {24, 16};
    job["model"]["dense_optimizer"]["learning_rate"] = 0.1;
    job["train"] = {{"batch_size", 32}};
    Write("job.json", job.dump());
  }
};

TEST_F(SlicedImagesTest, AnyAxisTrainsTheSame) {
  const Trained alone = Train(1, {});
  const struct {
    std::string tuple;
    uint32_t workers;
  } cuts[] = {{"[1,1,1,8]", 8}, {"[1,1,4,1]", 4}, {"[1,2,1,1]", 2}, {"[1,3]", 3}};
  for (const auto& cut : cuts) {
    const Overrides sliced = Sliced("[" + cut.tuple + "]");
    ExpectSame(Train(cut.workers, sliced), alone, cut.tuple);
    // 1e-6, and half a unit of the last of 6 digits for each of both.
    EXPECT_NEAR(LossOn(cut.workers, sliced), LossOn(1, {}), 2e-6) << cut.tuple;
  }
  ExpectSame(Train(2, Sliced("[[1,1,1,2]]") + Overrides{"parallel.interleave_num=2"}), alone,
             "two copies");
  // 28 columns over 8 workers: 4 for the first four of them, and 3 for the others.
  const std::string held = Evaluation(8, Sliced("[[1,1,1,8]]"), true);
  EXPECT_NE(held.find("112 of the 784 numeric columns"), std::string::npos) << held;
  EXPECT_NE(held.find("84 of the 784 numeric columns"), std::string::npos) << held;
}

TEST_F(SlicedImagesTest, WhatNoWorkerReadsIsRefused) {
  EXPECT_NE(Refusal({4, 1}, Sliced("[[2,1,1,2]]")).find("cuts two axes"), std::string::npos);
  EXPECT_NE(Refusal({4, 1}, Sliced("[[2,2]]")).find("cuts two axes"), std::string::npos);
  EXPECT_NE(Refusal({4, 1}, Sliced("[[1,1,1,8]]")).find("8 parts, and there are 4 workers"),
            std::string::npos);
  EXPECT_NE(Refusal({4, 1}, Sliced("[[1,4,1,1]]")).find("4 parts of an axis of 2"),
            std::string::npos);
}

// Numeric columns beside features, and alone.
class SlicedNumbersTest : public DatasetSlicesJobTest {
 protected:
  SlicedNumbersTest() {
    for (const auto& [path, rows] : {std::pair("train.csv", 50 * 32), std::pair("eval.csv", 99)}) {
      Random random(static_cast<uint64_t>(rows));
      std::string text;
      for (int i = 0; i < rows; ++i) {
        double sum = 0;
        std::string cells;
        for (int c = 0; c < 5; ++c) {
          const double x = random.Unit();
          sum += c % 2 == 0 ? x : -x;
          cells += "," + std::to_string(x);
        }
        text += std::string(sum > 0.5 ? "1" : "0") + cells + ",a" +
                std::to_string(random.Below(9)) + ",b" + std::to_string(random.Below(9)) + "\n";
      }
      Write(path, text);
    }
  }

  void WriteJob(const std::string& features, const std::string& model) {
    Write("job.json", R"({"data": {"train": ["train.csv"], "eval": ["eval.csv"], "columns": [
        {"name": "y", "type": "label"}, {"name": "x", "type": "numeric", "repeat": 5},)" +
                          features + R"(]}, "model": )" + model +
                          R"(, "train": {"batch_size": 32}})");
  }
};

TEST_F(SlicedNumbersTest, ColumnsAloneTrainTheSame) {
  WriteJob(R"({"name": "a", "type": "skip"}, {"name": "b", "type": "skip"})",
           R"({"type": "mlp", "hidden": [16, 8]})");
  const Trained alone = Train(1, {});
  ExpectSame(Train(4, Sliced("[[1,4]]")), alone, "[1,4]");
  ExpectSame(Train(5, Sliced("[[1,1],[1,5]]")), alone, "[1,5]");
  ExpectSame(Train(4, Sliced("[[1,4]]") + Overrides{"train.micro_batches=3"}), alone,
             "micro-batches");
  EXPECT_NE(Refusal({6, 1}, Sliced("[[1,6]]")).find("6 parts of the 5 columns"), std::string::npos);
}

TEST_F(SlicedNumbersTest, ColumnsBesideFeaturesTrainTheSame) {
  const std::string features = R"({"name": "a"}, {"name": "b"})";
  for (const char* type : {"wide_deep", "dlrm"}) {
    WriteJob(features,
             std::string(R"({"type": ")") + type + R"(", "embedding_dim": 4, "hidden": [16, 8]})");
    const Trained alone = Train(1, {});
    ExpectSame(Train(2, Sliced("[[1,2],[1,2]]")), alone, std::string(type) + " [1,2] on both");
    ExpectSame(Train(2, Sliced("[[1,2],[1,1]]")), alone, std::string(type) + " features alone");
  }
}

// A row is bad for every worker, also where the bad number is in the column of one.
TEST_F(SlicedNumbersTest, ABadNumberMakesTheRowBadForAll) {
  WriteJob(R"({"name": "a", "type": "skip"}, {"name": "b", "type": "skip"})",
           R"({"type": "mlp", "hidden": [16, 8]})");
  std::string text = *ReadWholeFile(*files_, "train.csv", 1 << 20);
  text[text.find('.', 40)] = '?';
  Write("train.csv", text);
  const Overrides lenient = {"data.max_bad_rows=1"};
  ExpectSame(Train(4, Sliced("[[1,4]]") + lenient), Train(1, lenient), "a bad row");
}

}  // namespace
}  // namespace hdps
