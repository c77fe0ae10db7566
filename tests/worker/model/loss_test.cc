// Tests losses of pairs against their definitions, and weights, groups and tasks cut into parts.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <vector>

#include "common/job/spec/data_spec.h"
#include "common/platform/random.h"
#include "tests/error_bound.h"
#include "tests/worker/model/model_fixture.h"
#include "worker/model/loss.h"
#include "worker/model/step_parts.h"

namespace hdps {
namespace {

constexpr uint32_t kExamples = 40;

Job LossJob(LossKind loss) {
  Job job = TestJob("logistic");
  job.model.loss = loss;
  job.data.item_features = {"C1", "C2"};
  return job;
}

// Returns a batch with few different items and groups, so that each has several examples.
Batch LossBatch(const Job& job, bool weighted) {
  Batch batch = TestBatch(job, {kExamples, 1, false, 3});
  Random random(8);
  for (const size_t f : {1u, 2u}) {
    for (Key& key : batch.sparse[f].keys) key = random.Below(4);
  }
  for (uint32_t i = 0; i < kExamples; ++i) {
    batch.groups.push_back(random.Below(6));
    if (weighted) batch.weights.push_back(static_cast<float>(random.Below(4)) / 2);
  }
  return batch;
}

class PairLossTest : public testing::TestWithParam<bool> {
 protected:
  PairLossTest() : executor_(NewInlineExecutor()), ops_(NewCpuOps(*executor_)) {}

  std::vector<float> RandomLogits(size_t cols) {
    Random random(4);
    std::vector<float> logits(kExamples * cols);
    for (float& value : logits) value = static_cast<float>(random.Normal());
    return logits;
  }

  // Returns the loss and computes its gradient by the model.
  double Train(const Job& job, const Batch& batch, const std::vector<float>& logits,
               std::vector<float>* gradient) {
    const size_t cols = logits.size() / kExamples;
    gradient->assign(logits.size(), -7.0f);
    ModelLoss loss(job, *ops_);
    loss.Bring(batch, true);
    loss.Train({logits.data(), kExamples, cols, cols}, {gradient->data(), kExamples, cols, cols});
    ops_->Fetch();
    return loss.Sum();
  }

  // Compares with `plain`, the definition in double. Its central differences are off by the third
  // derivative times h^2 / 6 and by rounding over h; losses here are sums of fewer than 100 terms
  // with third derivatives below 1 and sizes below 100.
  void Check(const Job& job, const Batch& batch, const std::vector<float>& logits,
             const std::function<double(const std::vector<double>&)>& plain) {
    std::vector<float> gradient;
    const double loss = Train(job, batch, logits, &gradient);
    std::vector<double> at(logits.begin(), logits.end());
    const double wanted = plain(at);
    ASSERT_GT(wanted, 0);
    // Products of 4 floats, and each loss rounded to a float.
    const double rounding = SumErrorBound(16, 16);
    EXPECT_NEAR(loss, wanted, kExamples * rounding);
    constexpr double kStep = 1e-4;
    const double allowed = 100 * kStep * kStep / 6 + 1e-11 / kStep + 8 * rounding;
    for (size_t i = 0; i < at.size(); ++i) {
      const double before = at[i];
      at[i] = before + kStep;
      const double over = plain(at);
      at[i] = before - kStep;
      const double under = plain(at);
      at[i] = before;
      ASSERT_NEAR(gradient[i], (over - under) / (2 * kStep), allowed) << i;
    }
  }

  static double WeightOf(const Batch& batch, size_t i) {
    return batch.weights.empty() ? 1 : double{batch.weights[i]};
  }

  std::unique_ptr<Executor> executor_;
  std::unique_ptr<DenseOps> ops_;
};

TEST_P(PairLossTest, BprIsItsDefinition) {
  const Job job = LossJob(LossKind::kBpr);
  const Batch batch = LossBatch(job, GetParam());
  Check(job, batch, RandomLogits(1), [&](const std::vector<double>& z) {
    double sum = 0;
    for (size_t i = 0; i < kExamples; ++i) {
      if (batch.labels[i] != 1) continue;
      double of_one = 0, negatives = 0;
      for (size_t j = 0; j < kExamples; ++j) {
        if (batch.groups[j] != batch.groups[i] || batch.labels[j] != 0) continue;
        of_one -= std::log(1 / (1 + std::exp(z[j] - z[i])));
        ++negatives;
      }
      if (negatives > 0) sum += WeightOf(batch, i) * of_one / negatives;
    }
    return sum;
  });
}

TEST_P(PairLossTest, SampledSoftmaxIsItsDefinition) {
  const Job job = LossJob(LossKind::kSampledSoftmax);
  const Batch batch = LossBatch(job, GetParam());
  constexpr size_t kDim = 4;
  const auto same_item = [&](size_t i, size_t j) {
    return batch.sparse[1].keys[i] == batch.sparse[1].keys[j] &&
           batch.sparse[2].keys[i] == batch.sparse[2].keys[j];
  };
  const auto logit = [&](const std::vector<double>& x, size_t i, size_t j) {
    double product = 0, times = 0;
    for (size_t d = 0; d < kDim; ++d) {
      product += x[i * 2 * kDim + d] * x[j * 2 * kDim + kDim + d];
    }
    for (size_t k = 0; k < kExamples; ++k) times += same_item(j, k) ? 1 : 0;
    return product - std::log(times / kExamples);
  };
  Check(job, batch, RandomLogits(2 * kDim), [&](const std::vector<double>& x) {
    double sum = 0;
    for (size_t i = 0; i < kExamples; ++i) {
      double total = 0;
      for (size_t j = 0; j < kExamples; ++j) {
        if (j == i || !same_item(i, j)) total += std::exp(logit(x, i, j));
      }
      const double of_one = std::log(total) - logit(x, i, i);
      sum += WeightOf(batch, i) * double{batch.labels[i]} * of_one;
    }
    return sum;
  });
}

// Each example counts by its weight, and each task by its own.
TEST_P(PairLossTest, SeveralTasksAreTheirDefinition) {
  Job job = LossJob(LossKind::kLogloss);
  job.model.tasks = {{"click", LossKind::kLogloss, 0.5, 3}, {"time", LossKind::kSquared, 2, 1}};
  Batch batch = LossBatch(job, GetParam());
  batch.num_labels = 2;
  batch.labels.resize(2 * kExamples);
  Random random(5);
  for (size_t i = 0; i < kExamples; ++i) {
    batch.labels[2 * i] = static_cast<float>(random.Below(2));
    batch.labels[2 * i + 1] = static_cast<float>(random.Below(8)) / 4;
  }
  Check(job, batch, RandomLogits(2), [&](const std::vector<double>& z) {
    double sum = 0;
    for (size_t i = 0; i < kExamples; ++i) {
      const double label = batch.labels[2 * i], off = z[2 * i + 1] - batch.labels[2 * i + 1];
      const double logloss = -3 * label * std::log(1 / (1 + std::exp(-z[2 * i]))) -
                             (1 - label) * std::log(1 / (1 + std::exp(z[2 * i])));
      sum += WeightOf(batch, i) * (0.5 * logloss + 2 * off * off);
    }
    return sum;
  });
}
INSTANTIATE_TEST_SUITE_P(Weights, PairLossTest, testing::Bool());

TEST_P(PairLossTest, ScoresOfPairsAreTheirLogits) {
  const Job bpr = LossJob(LossKind::kBpr), towers = LossJob(LossKind::kSampledSoftmax);
  const std::vector<float> z = RandomLogits(1), x = RandomLogits(8);
  std::vector<float> scores;
  const auto score = [&](const Job& job, const std::vector<float>& logits) {
    const Batch batch = LossBatch(job, false);
    ModelLoss loss(job, *ops_);
    loss.Bring(batch, false);
    const size_t cols = logits.size() / kExamples;
    loss.Score({logits.data(), kExamples, cols, cols}, &scores);
  };
  score(bpr, z);
  EXPECT_EQ(scores, z);
  score(towers, x);
  for (size_t i = 0; i < kExamples; ++i) {
    float product = 0;
    for (size_t d = 0; d < 4; ++d) product += x[i * 8 + d] * x[i * 8 + 4 + d];
    EXPECT_EQ(scores[i], product);
  }
}

// With more users than are processed at once, gradients of items sum over all. Compared with the
// formula of the gradient, in double.
TEST_P(PairLossTest, GradientsOfManyUsersAddUp) {
  constexpr size_t kMany = 1100, kDim = 3, kCols = 2 * kDim;
  const Job job = LossJob(LossKind::kSampledSoftmax);
  Batch batch;
  batch.num_examples = kMany;
  batch.labels.assign(kMany, 1.0f);
  batch.sparse.resize(4);
  for (SparseColumn& column : batch.sparse) {
    column.offsets.push_back(0);
    for (uint32_t i = 0; i < kMany; ++i) {
      column.keys.push_back(i);  // All items differ, so they have the same frequency.
      column.offsets.push_back(i + 1);
    }
  }
  Random random(6);
  std::vector<float> x(kMany * kCols), gradient(x.size(), -7.0f);
  for (float& value : x) value = static_cast<float>(random.Normal()) / 2;
  ModelLoss loss(job, *ops_);
  loss.Bring(batch, true);
  loss.Train({x.data(), kMany, kCols, kCols}, {gradient.data(), kMany, kCols, kCols});
  std::vector<double> wanted(x.size(), 0.0);
  std::vector<double> share(kMany);
  for (size_t i = 0; i < kMany; ++i) {
    double total = 0;
    for (size_t j = 0; j < kMany; ++j) {
      double product = 0;
      for (size_t d = 0; d < kDim; ++d)
        product += double{x[i * kCols + d]} * x[j * kCols + kDim + d];
      total += share[j] = std::exp(product);
    }
    for (size_t j = 0; j < kMany; ++j) {
      const double slope = share[j] / total - (i == j ? 1 : 0);
      for (size_t d = 0; d < kDim; ++d) {
        wanted[i * kCols + d] += slope * double{x[j * kCols + kDim + d]};
        wanted[j * kCols + kDim + d] += slope * double{x[i * kCols + d]};
      }
    }
  }
  // Sums of kMany terms. Shares add up to 1 over the items, so their products add up to less than
  // 4, and also over the users, which are all alike.
  const double allowed = SumErrorBound(kMany + 16, 8);
  for (size_t i = 0; i < x.size(); ++i) ASSERT_NEAR(gradient[i], wanted[i], allowed) << i;
}

// Returns what one of several workers would have read, from the batch of one: labels of all tasks,
// weights and groups, and all examples of each row.
TEST(LossPartsTest, PartsHaveAllOfTheirRows) {
  const Job job = LossJob(LossKind::kBpr);
  Batch batch = LossBatch(job, true);
  batch.num_labels = 2;
  batch.first_row = 7;
  for (uint32_t i = 0; i < kExamples; ++i) {
    batch.rows.push_back(i / 3);  // Three examples per row.
    batch.labels.push_back(0);
  }
  for (uint32_t i = 0; i < 2 * kExamples; ++i) batch.labels[i] = static_cast<float>(i);
  constexpr uint32_t kParts = 3;
  std::vector<int> seen(kExamples, 0);
  for (uint32_t p = 0; p < kParts; ++p) {
    const Batch part = CutBatch(batch, p, kParts);
    ASSERT_EQ(part.labels.size(), 2 * part.num_examples);
    ASSERT_EQ(part.weights.size(), part.num_examples);
    for (uint32_t i = 0; i < part.num_examples; ++i) {
      const auto from = static_cast<uint32_t>(part.labels[2 * i]) / 2;
      ++seen[from];
      EXPECT_EQ(part.labels[2 * i + 1], batch.labels[2 * from + 1]);
      EXPECT_EQ(part.weights[i], batch.weights[from]);
      EXPECT_EQ(part.groups[i], batch.groups[from]);
      EXPECT_EQ(part.sparse[2].keys[i], batch.sparse[2].keys[from]);
      EXPECT_EQ((batch.first_row + batch.rows[from]) % kParts, p);
      EXPECT_EQ(part.rows[i] * kParts + FirstRowOf(batch, p, kParts), batch.rows[from]);
    }
  }
  EXPECT_EQ(seen, std::vector<int>(kExamples, 1));
}

TEST(LossBatchTest, WhatDoesNotFitIsNamed) {
  const auto executor = NewInlineExecutor();
  Job job = LossJob(LossKind::kSquared);
  ModelRun run(job, *executor);
  Batch batch = LossBatch(job, true);
  EXPECT_TRUE(run.model().CheckBatch(batch).ok());
  batch.labels[3] = -12.5f;
  EXPECT_TRUE(run.model().CheckBatch(batch).ok());
  batch.labels[3] = std::numeric_limits<float>::infinity();
  EXPECT_NE(run.model().CheckBatch(batch).message().find("must be a finite number"),
            std::string::npos);
  batch.labels[3] = 0;
  batch.weights.pop_back();
  EXPECT_NE(run.model().CheckBatch(batch).message().find("39 weights"), std::string::npos);
  ModelRun bpr(LossJob(LossKind::kBpr), *executor);
  batch.weights.clear();
  batch.groups.clear();
  EXPECT_NE(bpr.model().CheckBatch(batch).message().find("0 groups"), std::string::npos);
}

}  // namespace
}  // namespace hdps
