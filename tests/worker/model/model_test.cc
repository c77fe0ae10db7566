// Tests what a model promises besides gradients: keys, initial weights, refusals, description.
#include "worker/model/model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "common/job/spec/cluster_spec.h"
#include "common/job/spec/data_spec.h"
#include "common/job/spec/loss_kind.h"
#include "common/job/spec/model_spec.h"
#include "common/job/spec/table_spec.h"
#include "common/platform/random.h"
#include "tests/error_bound.h"
#include "tests/worker/model/model_fixture.h"

namespace hdps {
namespace {

using testing::AllOf;
using testing::HasSubstr;

class ModelTest : public testing::Test {
 protected:
  std::string Refusal(const Job& job) {
    const Result<std::unique_ptr<Model>> model = NewModel(job, *executor_);
    EXPECT_FALSE(model.ok());
    if (model.ok()) return "";
    EXPECT_EQ(model.status().code(), Code::kInvalidArgument);
    return model.status().message();
  }
  const std::unique_ptr<Executor> executor_ = NewInlineExecutor();
};

// Computes logistic regression by its definition: one weight per key, one per number, a bias.
TEST_F(ModelTest, LogisticIsItsDefinition) {
  Job job = TestJob("logistic");
  ModelRun run(job, *executor_);
  const Batch batch = TestBatch(job, {30, 3, true, 2});
  const ModelRun::Gradients step = run.Step(batch);
  std::vector<float> logits;
  EXPECT_DOUBLE_EQ(run.Predict(batch, &logits), step.loss_sum);
  const auto first_of = [&](const std::string& name) {
    for (const DenseTensor& t : run.model().tensors()) {
      if (t.name == name) return t.first_chunk * kDenseChunkFloats;
    }
    ADD_FAILURE() << "no tensor " << name;
    return size_t{0};
  };
  const size_t weight = first_of("wide_numeric.weight");
  const size_t biases[] = {first_of("wide_numeric.bias"), first_of("wide_bias.bias")};
  const KeySet& keys = step.sets[0];
  std::vector<double> row_gradients(keys.unique.size()), row_errors(keys.unique.size());
  double loss = 0, bias_gradient = 0, error_sum = 0;
  // The terms are those of biases, numbers and keys.
  const size_t roundings = batch.num_examples + 2 + 5 + 4 * 3;
  for (uint32_t i = 0; i < batch.num_examples; ++i) {
    double z = double{run.dense()[biases[0]]} + double{run.dense()[biases[1]]};
    double size = 1 + std::fabs(z);  // Size of all terms, and of the exponential.
    const auto add = [&](double term) {
      z += term;
      size += std::fabs(term);
    };
    for (size_t j = 0; j < 5; ++j) add(run.dense()[weight + j] * batch.numeric[i * 5 + j]);
    for (size_t f = 0; f < 4; ++f) {
      const SparseColumn& column = batch.sparse[f];
      for (uint32_t k = column.offsets[i]; k < column.offsets[i + 1]; ++k) {
        add(column.weights[k] * (UnitFloat(RandomAt(column.keys[k], 0)) - 0.5f));
      }
    }
    const double p = 1 / (1 + std::exp(-z));
    const double error = SumErrorBound(roundings, size);  // Error of z, and of all that follows.
    EXPECT_NEAR(logits[i], z, error);
    error_sum += error;
    loss -= batch.labels[i] > 0 ? std::log(p) : std::log(1 - p);
    bias_gradient += p - double{batch.labels[i]};
    for (size_t f = 0; f < 4; ++f) {
      const SparseColumn& column = batch.sparse[f];
      for (uint32_t k = column.offsets[i]; k < column.offsets[i + 1]; ++k) {
        row_gradients[keys.row_index[f][k]] += column.weights[k] * (p - double{batch.labels[i]});
        row_errors[keys.row_index[f][k]] += std::fabs(column.weights[k]) * error;
      }
    }
  }
  EXPECT_NEAR(step.loss_sum, loss, error_sum);
  for (const size_t bias : biases) EXPECT_NEAR(step.dense[bias], bias_gradient, error_sum);
  for (size_t i = 0; i < row_gradients.size(); ++i) {
    EXPECT_NEAR(step.rows[0][i], row_gradients[i], row_errors[i]);
  }
}

TEST_F(ModelTest, KeysAreSharedBetweenTablesOfTheSameFeatures) {
  Job job = TestJob("wide_deep");
  const Batch batch = TestBatch(job, {60, 3, false, 3});
  std::vector<KeySet> sets;
  KeyFinder finder(job);
  finder.Find(batch, &sets);
  EXPECT_EQ(sets.size(), 1u);
  EXPECT_EQ(finder.table_keys(), (std::vector<int>{0, 0, -1}));
  std::vector<Key> order;
  for (size_t f = 0; f < 4; ++f) {
    ASSERT_EQ(sets[0].row_index[f].size(), batch.sparse[f].keys.size());
    for (size_t k = 0; k < batch.sparse[f].keys.size(); ++k) {
      const uint32_t row = sets[0].row_index[f][k];
      const Key key = batch.sparse[f].keys[k];
      ASSERT_EQ(sets[0].unique[row], key);
      if (std::ranges::find(order, key) == order.end()) order.push_back(key);
    }
  }
  std::ranges::stable_sort(
      order, {}, [&](Key key) { return ShardOf(key, ShardBy::kKey, job.cluster.shards).value; });
  EXPECT_EQ(sets[0].unique, order) << "by shard, then in order of first sight, each once";

  job.model.layers[0].features = {"C2", "C0"};  // Features of the wide table.
  KeyFinder apart(job);
  apart.Find(batch, &sets);
  EXPECT_EQ(apart.table_keys(), (std::vector<int>{0, 1, -1}));
  EXPECT_EQ(sets[0].row_index[0].size(), batch.sparse[0].keys.size());
  EXPECT_TRUE(sets[0].row_index[1].empty());
  EXPECT_EQ(sets[0].row_index[2].size(), batch.sparse[2].keys.size());
}

TEST_F(ModelTest, FirstWeightsDependOnTheSeedAlone) {
  const Result<std::unique_ptr<Model>> a = NewModel(TestJob("wide_deep"), *executor_);
  const Result<std::unique_ptr<Model>> b = NewModel(TestJob("wide_deep"), *executor_);
  ASSERT_TRUE(a.ok() && b.ok());
  const std::vector<float> first = (*a)->InitialDense(7);
  EXPECT_EQ(first, (*b)->InitialDense(7));
  EXPECT_NE(first, (*a)->InitialDense(8));
  EXPECT_EQ(first.size(), (*a)->dense_floats());
  for (const DenseTensor& tensor : (*a)->tensors()) {
    SCOPED_TRACE(tensor.name);
    const float* values = first.data() + tensor.first_chunk * kDenseChunkFloats;
    float largest = 0;
    for (size_t i = 0; i < tensor.size(); ++i) largest = std::max(largest, std::fabs(values[i]));
    if (tensor.shape.size() == 1 || tensor.name == "wide_numeric.weight") {
      EXPECT_EQ(largest, 0.0f);  // Biases, and the linear part.
    } else {
      const float bound = std::sqrt(6.0f / static_cast<float>(tensor.shape[0] + tensor.shape[1]));
      EXPECT_LE(largest, bound * 1.0001f);
      EXPECT_GT(largest, bound * 0.5f);
    }
    for (size_t i = tensor.size(); i < tensor.num_chunks * kDenseChunkFloats; ++i) {
      ASSERT_EQ(values[i], 0.0f);
    }
  }
}

TEST_F(ModelTest, SoftmaxProbabilitiesAddUpToOne) {
  ModelRun run(TestJob("mlp"), *executor_);
  const Batch batch = TestBatch(run.job(), {20, 1, false, 4});
  std::vector<float> probabilities;
  const double loss = run.Predict(batch, &probabilities);
  ASSERT_EQ(probabilities.size(), 60u);
  double expected = 0;
  for (size_t i = 0; i < 20; ++i) {
    const float* p = probabilities.data() + 3 * i;
    EXPECT_NEAR(p[0] + p[1] + p[2], 1.0f, SumErrorBound(3 + 3, 1));
    expected -= std::log(p[static_cast<size_t>(batch.labels[i])]);
  }
  // The rounding of a probability, in its logarithm.
  EXPECT_NEAR(loss, expected, SumErrorBound(3 + 3, 20));
}

TEST_F(ModelTest, BadBatchesAreRefused) {
  ModelRun wide_deep(TestJob("wide_deep"), *executor_), mlp(TestJob("mlp"), *executor_);
  const Batch good = TestBatch(wide_deep.job(), {});
  EXPECT_TRUE(wide_deep.model().CheckBatch(good).ok());
  const auto refusal = [](ModelRun& run, const Batch& batch) {
    const Status status = run.model().CheckBatch(batch);
    EXPECT_EQ(status.code(), Code::kInvalidArgument);
    return status.message();
  };
  Batch bad = good;
  bad.labels[3] = 1.5f;
  EXPECT_THAT(refusal(wide_deep, bad), AllOf(HasSubstr("row 3"), HasSubstr("0..1")));
  bad.labels[3] = std::nanf("");
  EXPECT_THAT(refusal(wide_deep, bad), HasSubstr("row 3"));
  bad = good;
  bad.sparse.pop_back();
  EXPECT_THAT(refusal(wide_deep, bad), HasSubstr("3 sparse features"));
  bad = good;
  bad.num_numeric = 4;
  EXPECT_THAT(refusal(wide_deep, bad), HasSubstr("4 numeric columns"));
  bad = good;
  bad.labels.pop_back();
  EXPECT_THAT(refusal(wide_deep, bad), HasSubstr("labels"));
  bad = good;
  bad.labels[0] = 3;
  EXPECT_THAT(refusal(mlp, bad), AllOf(HasSubstr("row 0"), HasSubstr("0..2")));
  bad.labels[0] = 0.5;
  EXPECT_THAT(refusal(mlp, bad), HasSubstr("class number"));
}

TEST_F(ModelTest, MistakenGraphsAreRefusedWithLayerAndReason) {
  LayerOptions deep, wide, one;
  deep.table = "deep";
  wide.table = "wide";
  one.units = 1;
  const LayerSpec e = TestLayer("e", "embedding", {}, deep), n = TestLayer("n", "numeric", {});
  const auto refusal = [&](std::vector<LayerSpec> layers) { return Refusal(TestGraph(layers)); };
  EXPECT_THAT(refusal({}), HasSubstr("at least one layer"));
  EXPECT_THAT(refusal({e, TestLayer("z", "dense", {"x"}, one)}),
              AllOf(HasSubstr("model.layers.1.inputs"), HasSubstr("\"x\"")));
  EXPECT_THAT(refusal({e, n, TestLayer("s", "sum", {"e", "n"})}),
              AllOf(HasSubstr("\"n\" (width 5)"), HasSubstr("\"e\" (width 16)")));
  EXPECT_THAT(refusal({e, TestLayer("z", "dense", {"e"})}), HasSubstr("units of at least 1"));
  EXPECT_THAT(refusal({n, TestLayer("f", "fm", {"n"})}), HasSubstr("vectors of one dim"));
  EXPECT_THAT(refusal({e, n, TestLayer("d", "dot", {"e", "n"})}), HasSubstr("a row of \"e\", 4"));
  EXPECT_THAT(refusal({e}), HasSubstr("1 wide under logloss"));
  EXPECT_THAT(refusal({n, TestLayer("z", "dense", {"n", "n"}, one)}), HasSubstr("2 inputs"));
  EXPECT_THAT(refusal({n, TestLayer("z", "dens", {"n"}, one)}), HasSubstr("\"dense\"?"));
  deep.table = "dep";
  EXPECT_THAT(refusal({TestLayer("e", "embedding", {}, deep)}),
              AllOf(HasSubstr("\"dep\""), HasSubstr("\"deep\"?")));
  Job softmax = TestGraph({n, TestLayer("z", "dense", {"n"}, one)});
  softmax.model.loss = LossKind::kSoftmax;
  EXPECT_THAT(Refusal(softmax), HasSubstr("softmax"));
  Job numberless = TestGraph({n, TestLayer("z", "dense", {"n"}, one)});
  numberless.data = TestData(0, 4);
  EXPECT_THAT(Refusal(numberless), HasSubstr("no numeric column"));
  numberless.data = TestData(1, 4);
  numberless.model.layers.pop_back();
  EXPECT_THAT(Refusal(numberless), HasSubstr("learns"));
}

TEST_F(ModelTest, DevicesAreNamed) {
  Job job = TestJob("wide_deep");
  job.model.device = "tpu";
  EXPECT_THAT(Refusal(job), AllOf(HasSubstr("model.device"), HasSubstr("auto, cpu or cuda")));
  job.model.device = "auto";
  EXPECT_TRUE(NewModel(job, *executor_).ok());
  job.model.device = "cuda";
  const Result<std::unique_ptr<Model>> cuda = NewModel(job, *executor_);
  if (cuda.ok()) {
    EXPECT_THAT((*cuda)->Describe(), HasSubstr("device=cuda"));
  } else {
    EXPECT_THAT(cuda.status().message(),
                AllOf(HasSubstr("model.device: cuda"), HasSubstr("use cpu or auto")));
  }
}

// Both ways of the first layer give the same step, and auto chooses one of them by the batch alone.
TEST_F(ModelTest, FirstLayersAgree) {
  for (const BatchOptions& options : {BatchOptions{500, 1, false, 3}, BatchOptions{300, 4, true, 4},
                                      BatchOptions{7, 1, false, 5}}) {
    std::vector<ModelRun::Gradients> steps;
    for (const FirstLayer choice :
         {FirstLayer::kPlain, FirstLayer::kUniqueRows, FirstLayer::kAuto, FirstLayer::kAuto}) {
      Job job = TestJob("wide_deep");
      job.model.first_layer = choice;
      ModelRun run(job, *executor_);
      steps.push_back(run.Step(TestBatch(job, options)));
    }
    EXPECT_EQ(steps[2].dense, steps[3].dense);
    EXPECT_TRUE(steps[2].dense == steps[0].dense || steps[2].dense == steps[1].dense);
    // The longest sum: over the batch, over the embeddings of an example, or over a layer's units.
    const size_t terms = options.num_examples * options.keys_max + 4 * 4 * options.keys_max + 64;
    EXPECT_NEAR(steps[1].loss_sum, steps[0].loss_sum, SumsErrorBound(terms, steps[0].loss_sum));
    const auto expect_near = [terms](const std::vector<float>& a, const std::vector<float>& b) {
      double largest = 0, wrong = 0;
      for (size_t i = 0; i < a.size(); ++i) {
        largest = std::max(largest, std::fabs(double{b[i]}));
        wrong = std::max(wrong, std::fabs(double{a[i]} - double{b[i]}));
      }
      EXPECT_LE(wrong, SumsErrorBound(terms, largest));
    };
    expect_near(steps[1].dense, steps[0].dense);
    for (size_t t = 0; t < 2; ++t) expect_near(steps[1].rows[t], steps[0].rows[t]);
  }
}

TEST_F(ModelTest, RowsMayLieInPiecesAndTheirGradientsGoWhereTheyAreWanted) {
  for (const char* type : {"wide_deep", "deepfm", "dcn_v2", "dlrm", "logistic", "pnn", "fibinet"}) {
    for (const FirstLayer first_layer : {FirstLayer::kPlain, FirstLayer::kUniqueRows}) {
      Job job = TestJob(type);
      job.model.first_layer = first_layer;
      ModelRun run(job, *executor_);
      const Batch batch = TestBatch(job, {40, 5, true, 2});
      const ModelRun::Gradients usual = run.Step(batch);
      for (const size_t pieces : {1, 2, 3, 8}) {
        ModelRun other(job, *executor_);
        const ModelRun::Gradients placed = other.StepInPieces(batch, pieces);
        EXPECT_EQ(usual.loss_sum, placed.loss_sum) << type;
        EXPECT_EQ(usual.rows, placed.rows) << type;
        EXPECT_EQ(usual.dense, placed.dense) << type;
      }
    }
  }
}

TEST_F(ModelTest, DescriptionHasALineALayerAndTable) {
  ModelRun run(TestJob("wide_deep"), *executor_);
  const std::string text = run.model().Describe();
  const size_t lines = static_cast<size_t>(std::count(text.begin(), text.end(), '\n')) + 1;
  EXPECT_EQ(lines, run.job().model.layers.size() + run.job().tables.size());
  EXPECT_THAT(text, HasSubstr("layer deep1 kind=dense device=cpu output=[n,16] weights=29x16+16 "
                              "parameters=480 bytes=1920 first_layer=auto\n"));
  EXPECT_THAT(text, HasSubstr("table deep kind=sparse device=host update=host"));
}

}  // namespace
}  // namespace hdps
