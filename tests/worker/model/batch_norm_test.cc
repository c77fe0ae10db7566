// Tests batch normalization in a model: its statistics, its state, and its evaluation.
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "common/job/spec/layer_spec.h"
#include "common/job/spec/table_spec.h"
#include "tests/error_bound.h"
#include "tests/worker/model/model_fixture.h"

namespace hdps {
namespace {

// Returns a job that normalizes the numeric columns.
Job NormalizedNumbers() {
  LayerOptions one, wide;
  one.units = 1;
  wide.table = "wide";
  wide.combine = Combine::kSum;
  Job job =
      TestGraph({TestLayer("n", "numeric", {}), TestLayer("norm", "batch_norm", {"n"}),
                 TestLayer("z", "dense", {"norm"}, one), TestLayer("w", "embedding", {}, wide),
                 TestLayer("logit", "sum", {"z", "w"})});
  job.tables.erase(job.tables.begin());  // "deep", which is not used.
  return job;
}

class BatchNormTest : public testing::Test {
 protected:
  BatchNormTest()
      : job_(NormalizedNumbers()), executor_(NewInlineExecutor()), run_(job_, *executor_) {}

  // Returns the offset of the tensor "norm.<part>" in the flat array.
  size_t At(const std::string& part) const {
    for (const DenseTensor& tensor : const_cast<ModelRun&>(run_).model().tensors()) {
      if (tensor.name == "norm." + part) return tensor.first_chunk * kDenseChunkFloats;
    }
    ADD_FAILURE() << part;
    return 0;
  }

  const Job job_;
  const std::unique_ptr<Executor> executor_;
  ModelRun run_;
};

struct Statistics {
  double mean = 0, squares = 0, size = 0;  // squares: the sum of squared distances from the mean.
};
Statistics OfColumn(const Batch& batch, size_t j) {
  Statistics of;
  const double n = batch.num_examples;
  const auto at = [&](size_t i) { return double{batch.numeric[i * batch.num_numeric + j]}; };
  for (size_t i = 0; i < batch.num_examples; ++i) of.mean += at(i) / n;
  for (size_t i = 0; i < batch.num_examples; ++i) {
    of.squares += (at(i) - of.mean) * (at(i) - of.mean);
    of.size += std::fabs(at(i)) / n;
  }
  return of;
}

// Roundings of a statistic: those of a block's sum, and a few after it.
constexpr size_t kRoundings = kSumRows + 16;

TEST_F(BatchNormTest, GivesWhatMovesTheRunningStatistics) {
  for (const uint32_t rows : {2u, 24u, 200u}) {
    SCOPED_TRACE(rows);
    const Batch batch = TestBatch(job_, {rows, 1, false, 5});
    const ModelRun::Gradients found = run_.Step(batch);
    const size_t mean = At("running_mean"), variance = At("running_variance");
    for (size_t j = 0; j < batch.num_numeric; ++j) {
      const Statistics of = OfColumn(batch, j);
      const double n = rows, unbiased = of.squares / (n - 1);
      const double average = double{run_.dense()[mean + j]};
      const double spread = double{run_.dense()[variance + j]};
      ASSERT_NEAR(double{found.dense[mean + j]}, n * (average - of.mean),
                  n * Gamma(kRoundings) * (of.size + std::fabs(average)));
      ASSERT_NEAR(double{found.dense[variance + j]}, n * (spread - unbiased),
                  n * Gamma(2 * kRoundings) * (unbiased + spread + of.size * of.size));
      // The other end of the chunk is empty.
      ASSERT_EQ(found.dense[mean + batch.num_numeric + j], 0.0f);
    }
  }
}

// Evaluation with the batch's statistics as running ones is the step itself.
TEST_F(BatchNormTest, EvaluationTakesTheRunningStatistics) {
  const Batch batch = TestBatch(job_, {40, 1, false, 5});
  const double trained = run_.Step(batch).loss_sum;
  std::vector<float> probabilities;
  const double before = run_.Predict(batch, &probabilities);
  double step = 0;  // The difference if the statistics had no effect.
  for (size_t j = 0; j < batch.num_numeric; ++j) {
    const Statistics of = OfColumn(batch, j);
    run_.dense()[At("running_mean") + j] = static_cast<float>(of.mean);
    run_.dense()[At("running_variance") + j] = static_cast<float>(of.squares / batch.num_examples);
  }
  step = std::fabs(before - trained);
  const double after = run_.Predict(batch, &probabilities);
  const double allowed = batch.num_examples * Gamma(8 * kRoundings) * 16;
  ASSERT_GT(step, 4 * allowed) << "the test would notice nothing";
  EXPECT_NEAR(after, trained, allowed);
}

// One example has no variance: it is normalized as in evaluation, and changes no statistic.
TEST_F(BatchNormTest, APartOfOneExampleTakesTheRunningStatistics) {
  const Batch batch = TestBatch(job_, {1, 1, false, 5});
  const ModelRun::Gradients found = run_.Step(batch);
  std::vector<float> probabilities;
  // A lone row of training is summed in another order than a score: some sums of fewer than 64
  // products of size 1, each addition off by half of 2^-23.
  EXPECT_NEAR(run_.Predict(batch, &probabilities), found.loss_sum, 64 * 0x1p-24);
  for (size_t j = 0; j < batch.num_numeric; ++j) {
    EXPECT_EQ(found.dense[At("running_mean") + j], 0.0f);
    EXPECT_EQ(found.dense[At("running_variance") + j], 0.0f);
    EXPECT_NE(found.dense[At("gain") + j], 0.0f);
    EXPECT_NE(found.dense[At("bias") + j], 0.0f);
  }
}

// A constant column has no variance, so epsilon replaces it.
TEST_F(BatchNormTest, AConstantColumnBecomesItsBias) {
  Batch batch = TestBatch(job_, {30, 1, false, 5});
  for (size_t i = 0; i < batch.num_examples; ++i) batch.numeric[i * batch.num_numeric] = 1e6f;
  const ModelRun::Gradients found = run_.Step(batch);
  EXPECT_TRUE(std::isfinite(found.loss_sum));
  EXPECT_EQ(found.dense[At("gain")], 0.0f);
  EXPECT_NE(found.dense[At("gain") + 1], 0.0f);
}

}  // namespace
}  // namespace hdps
