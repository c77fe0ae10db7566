// Tests activations, normalization and dropout in a model: gradients, parts, evaluation.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <span>

#include "common/job/spec/model_spec.h"
#include "common/job/spec/table_spec.h"
#include "common/platform/random.h"
#include "tests/worker/model/model_fixture.h"
#include "worker/model/step_parts.h"

namespace hdps {
namespace {

constexpr double kEpsilon = std::numeric_limits<float>::epsilon();
// Roundings from the inputs to a logit: the sum of 21 products, the activation, sums and squares
// over 8, and the sum of 8 products. kSize: the size of the rounded numbers after layer_norm, whose
// deviation is 1.
constexpr double kRoundings = 64, kSize = 4;

struct Case {
  std::string name;
  Activation activation;
  double rate;
  bool batch_norm = false;
  Job MakeJob() const {
    return batch_norm ? BatchNormGraph(activation, rate) : NormalizedGraph(activation, rate);
  }
};
void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }

class LayersTest : public testing::TestWithParam<Case> {
 protected:
  LayersTest()
      : job_(GetParam().MakeJob()),
        executor_(NewInlineExecutor()),
        run_(job_, *executor_),
        batch_(TestBatch(job_, {24, 1, false, 5})) {
    batch_.first_row = 48;
    batch_.epoch = 1;
  }

  // Returns the central difference of the loss along a direction from parameters[first] on.
  double Slope(std::span<const double> direction, double step, std::vector<float>& parameters,
               size_t first) {
    const std::vector<float> saved = parameters;
    double loss[2];
    for (const int sign : {1, -1}) {
      for (size_t i = 0; i < direction.size(); ++i) {
        parameters[first + i] = static_cast<float>(saved[first + i] + sign * step * direction[i]);
      }
      loss[sign > 0] = run_.Step(batch_).loss_sum;
    }
    parameters = saved;
    return (loss[1] - loss[0]) / (2 * step);
  }

  // The difference between the slopes of two step sizes, one twice the other, is three times the
  // truncation error of the smaller; the rest is rounding of the losses, divided by the step.
  void CheckAlong(std::span<const float> gradient, std::vector<float>& parameters, size_t first) {
    double norm = 0;
    for (const float g : gradient) norm += double{g} * double{g};
    norm = std::sqrt(norm);
    ASSERT_GT(norm, 0);
    Random random(11);
    std::vector<double> direction(gradient.size());
    double expected = 0;
    for (size_t i = 0; i < direction.size(); ++i) {
      direction[i] =
          gradient[i] / norm + random.Normal() / std::sqrt(static_cast<double>(gradient.size()));
      expected += direction[i] * double{gradient[i]};
    }
    constexpr double kStep = 1.0 / 128;
    const double slope = Slope(direction, kStep, parameters, first);
    const double wider = Slope(direction, 2 * kStep, parameters, first);
    const double rounding = batch_.num_examples * kRoundings * kEpsilon * kSize / kStep;
    EXPECT_LT(rounding, 0.5 * norm) << "the test would notice nothing";
    EXPECT_NEAR(slope, expected, std::fabs(wider - slope) + rounding);
  }

  Job job_;
  const std::unique_ptr<Executor> executor_;
  ModelRun run_;
  Batch batch_;
};

TEST_P(LayersTest, GradientsAgreeWithDifferences) {
  const ModelRun::Gradients at = run_.Step(batch_);
  for (const DenseTensor& tensor : run_.model().tensors()) {
    SCOPED_TRACE(tensor.name);
    if (tensor.name.find(".running_") != std::string::npos) continue;  // Not parameters.
    const size_t first = tensor.first_chunk * kDenseChunkFloats;
    const std::span<const float> gradient = std::span(at.dense).subspan(first, tensor.size());
    if (GetParam().batch_norm && tensor.name == "h.bias") {
      // The subtracted mean has it too.
      const double rounding = batch_.num_examples * kRoundings * kEpsilon * kSize;
      for (const float g : gradient) EXPECT_NEAR(g, 0, rounding);
      continue;
    }
    CheckAlong(gradient, run_.dense(), first);
  }
  run_.row_shift()[0].assign(at.rows[0].size(), 0.0f);
  CheckAlong(at.rows[0], run_.row_shift()[0], 0);
}

// Layers in which examples do not affect each other.
class RowByRowTest : public LayersTest {};

// The single examples, each at its own position, add up to the batch.
TEST_P(RowByRowTest, ExamplesAddUpToTheBatch) {
  const ModelRun::Gradients whole = run_.Step(batch_);
  std::vector<double> sum(whole.dense.size()), size(whole.dense.size());
  double loss = 0;
  for (uint32_t i = 0; i < batch_.num_examples; ++i) {
    const Batch one = CutBatch(batch_, i, batch_.num_examples);
    ASSERT_EQ(one.num_examples, 1u);
    const ModelRun::Gradients part = run_.Step(one);
    loss += part.loss_sum;
    for (size_t j = 0; j < sum.size(); ++j) {
      sum[j] += double{part.dense[j]};
      size[j] += std::fabs(double{part.dense[j]});
    }
  }
  const double share = (kRoundings + batch_.num_examples) * kEpsilon * kSize;
  EXPECT_NEAR(loss, whole.loss_sum, share * batch_.num_examples);
  for (size_t j = 0; j < sum.size(); ++j) {
    ASSERT_NEAR(sum[j], double{whole.dense[j]}, share * (size[j] + 1)) << j;
  }
}

TEST_P(LayersTest, ThreadsChangeNoBit) {
  Batch large = TestBatch(job_, {900, 1, false, 6});
  const ModelRun::Gradients wanted = run_.Step(large);
  const std::unique_ptr<Executor> threads = NewTbbExecutor(4);
  ModelRun other(job_, *threads);
  const ModelRun::Gradients found = other.Step(large);
  EXPECT_EQ(found.loss_sum, wanted.loss_sum);
  EXPECT_EQ(found.dense, wanted.dense);
  EXPECT_EQ(found.rows, wanted.rows);
}

const Case kRowByRow[] = {{"none", Activation::kNone, 0},
                          {"sigmoid", Activation::kSigmoid, 0},
                          {"tanh", Activation::kTanh, 0},
                          {"gelu", Activation::kGelu, 0},
                          {"leaky_relu", Activation::kLeakyRelu, 0},
                          {"dropout", Activation::kTanh, 0.4}};
const Case kByColumn[] = {{"batch_norm", Activation::kNone, 0, true},
                          {"batch_norm_tanh", Activation::kTanh, 0, true},
                          {"batch_norm_dropout", Activation::kNone, 0.4, true},
                          {"batch_norm_gelu_dropout", Activation::kGelu, 0.4, true}};
const auto kNameOfCase = [](const auto& instance) { return instance.param.name; };
INSTANTIATE_TEST_SUITE_P(Kinds, LayersTest, testing::ValuesIn(kRowByRow), kNameOfCase);
INSTANTIATE_TEST_SUITE_P(BatchNorm, LayersTest, testing::ValuesIn(kByColumn), kNameOfCase);
INSTANTIATE_TEST_SUITE_P(Kinds, RowByRowTest, testing::ValuesIn(kRowByRow), kNameOfCase);

TEST(DropoutTest, IsOffInEvaluation) {
  const std::unique_ptr<Executor> executor = NewInlineExecutor();
  const Job with = NormalizedGraph(Activation::kTanh, 0.4),
            without = NormalizedGraph(Activation::kTanh, 0);
  ModelRun dropping(with, *executor), plain(without, *executor);
  const Batch batch = TestBatch(with, {40, 1, false, 5});
  std::vector<float> expected, found;
  EXPECT_EQ(dropping.Predict(batch, &found), plain.Predict(batch, &expected));
  EXPECT_EQ(found, expected);
  EXPECT_NE(dropping.Step(batch).loss_sum, plain.Step(batch).loss_sum);
}

TEST(DropoutTest, DependsOnSeedLayerEpochAndRow) {
  const std::unique_ptr<Executor> executor = NewInlineExecutor();
  Job job = NormalizedGraph(Activation::kTanh, 0.4);
  ModelRun run(job, *executor);
  Batch batch = TestBatch(job, {40, 1, false, 5});
  const double loss = run.Step(batch).loss_sum;
  EXPECT_EQ(run.Step(batch).loss_sum, loss);
  batch.epoch = 1;
  EXPECT_NE(run.Step(batch).loss_sum, loss);
  batch.epoch = 0;
  batch.first_row = 40;
  EXPECT_NE(run.Step(batch).loss_sum, loss);
  batch.first_row = 0;
  const auto other = [&](const Job& changed) {
    ModelRun another(changed, *executor);
    another.dense() = run.dense();
    return another.Step(batch).loss_sum;
  };
  EXPECT_EQ(other(job), loss);
  job.model.layers[5].name = "drop2";
  job.model.layers[6].inputs = {"drop2"};
  EXPECT_NE(other(job), loss);
  job = NormalizedGraph(Activation::kTanh, 0.4);
  job.seed = 2;
  EXPECT_NE(other(job), loss);
}

}  // namespace
}  // namespace hdps
