// Tests gradients of whole models: against finite differences, over parts, over threads, over time.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "common/job/spec/model_spec.h"
#include "common/job/spec/table_spec.h"
#include "common/platform/random.h"
#include "tests/error_bound.h"
#include "tests/worker/model/model_fixture.h"
#include "tests/worker/model/sequence_graphs.h"

namespace hdps {
namespace {

struct Case {
  std::string name;
  Job job;
  BatchOptions batch;
};
void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }

// Returns a graph with an embedding with three kinds of consumers, before and behind a concat; a
// concat in a concat; one input twice; an unused layer.
Job TangledGraph() {
  LayerOptions deep, wide, relu, plain;
  deep.table = "deep";
  deep.pooling = Pooling::kMean;
  wide.table = "wide";
  wide.combine = Combine::kSum;
  relu.units = 7;
  relu.activation = Activation::kRelu;
  plain.units = 1;
  return TestGraph({TestLayer("e", "embedding", {}, deep), TestLayer("n", "numeric", {}),
                    TestLayer("w", "embedding", {}, wide), TestLayer("fm1", "fm", {"e"}),
                    TestLayer("unused", "dense", {"e"}, relu),
                    TestLayer("inner", "concat", {"e", "n"}), TestLayer("h1", "dense", {"e"}, relu),
                    TestLayer("outer", "concat", {"inner", "h1", "h1", "w"}),
                    TestLayer("h2", "dense", {"outer"}, relu),
                    TestLayer("h3", "dense", {"inner"}, relu), TestLayer("fm2", "fm", {"e"}),
                    TestLayer("h23", "sum", {"h2", "h3"}), TestLayer("z", "dense", {"h23"}, plain),
                    TestLayer("wb", "bias", {"w"}),
                    TestLayer("logit", "sum", {"z", "wb", "fm1", "fm2"})});
}

// Returns a graph with embeddings that a dense layer multiplies on rows: alone, and in a concat
// between numbers, a trained layer, and another embedding of the same table. One embedding must not
// be, because fm reads it too.
Job GraphOnRows() {
  LayerOptions sums, means, wide, relu, plain;
  sums.table = means.table = "deep";
  wide.table = "wide";
  wide.combine = Combine::kSum;
  means.pooling = Pooling::kMean;
  relu.units = 70;
  relu.activation = Activation::kRelu;
  plain.units = 1;
  Job job = TestGraph(
      {TestLayer("a", "embedding", {}, sums), TestLayer("b", "embedding", {}, means),
       TestLayer("c", "embedding", {}, sums), TestLayer("n", "numeric", {}),
       TestLayer("h", "dense", {"n"}, relu), TestLayer("fm", "fm", {"c"}),
       TestLayer("all", "concat", {"n", "h", "b", "c"}), TestLayer("x", "dense", {"a"}, relu),
       TestLayer("y", "dense", {"all"}, relu), TestLayer("xy", "sum", {"x", "y"}),
       TestLayer("z", "dense", {"xy"}, plain), TestLayer("w", "embedding", {}, wide),
       TestLayer("logit", "sum", {"z", "fm", "w"})});
  job.model.first_layer = FirstLayer::kUniqueRows;
  return job;
}

// Returns layers whose rows are not contiguous, because they would collide in the cache: see
// RowStride.
Job WideLayers() {
  LayerOptions deep, wide, first, crosses, second, plain;
  deep.table = "deep";
  wide.table = "wide";
  wide.combine = Combine::kSum;
  first.units = 256;
  second.units = 512;
  first.activation = second.activation = Activation::kRelu;
  crosses.units = 2;
  plain.units = 1;
  return TestGraph({TestLayer("e", "embedding", {}, deep), TestLayer("n", "numeric", {}),
                    TestLayer("all", "concat", {"e", "n"}),
                    TestLayer("h1", "dense", {"all"}, first),
                    TestLayer("c", "cross", {"h1"}, crosses),
                    TestLayer("h2", "dense", {"c"}, second), TestLayer("z", "dense", {"h2"}, plain),
                    TestLayer("w", "embedding", {}, wide), TestLayer("logit", "sum", {"z", "w"})});
}

Job OnRows(Job job) {
  job.model.first_layer = FirstLayer::kUniqueRows;
  return job;
}

std::vector<Case> Cases() {
  std::vector<Case> cases;
  for (const RecipeRecord& recipe : Recipes()) {
    // With one key there is nothing to learn of what comes before or beside it.
    if (recipe.word != "sasrec" && recipe.word != "dien")
      cases.push_back({recipe.word, TestJob(recipe.word), {}});
    cases.push_back({recipe.word + "_bags", TestJob(recipe.word), {40, 3, true, 5}});
  }
  // The values that are not the default.
  cases.push_back({"pnn_both", TestJob("pnn", {{"products", "both"}}), {40, 3, true, 5}});
  cases.push_back({"xdeepfm_whole", TestJob("xdeepfm", {{"cin_split", "none"}}), {}});
  cases.push_back({"fibinet_all", TestJob("fibinet", {{"bilinear", "all"}}), {}});
  cases.push_back({"fibinet_interaction", TestJob("fibinet", {{"bilinear", "interaction"}}), {}});
  cases.push_back({"rows", OnRows(TestJob("wide_deep")), {}});
  cases.push_back({"rows_bags", OnRows(TestJob("wide_deep")), {40, 3, true, 5}});
  cases.push_back({"rows_graph", GraphOnRows(), {40, 3, false, 5}});
  cases.push_back({"rows_tangled", OnRows(TangledGraph()), {40, 3, true, 6}});
  cases.push_back({"tangled", TangledGraph(), {40, 3, true, 6}});
  cases.push_back({"wide_layers", WideLayers(), {33, 1, false, 8}});
  for (const NamedJob& graph : SequenceGraphs()) {
    if (!graph.needs_bags) cases.push_back({graph.name, graph.job, {}});
    cases.push_back({graph.name + "_bags", graph.job, {40, 3, true, 5}});
  }
  cases.push_back({"tangled_single", TangledGraph(), {33, 1, false, 8}});
  return cases;
}

class GradientTest : public testing::TestWithParam<Case> {};

// Returns the central difference of the loss when parameters[first + i] moves by step *
// direction[i].
double LossSlope(ModelRun& run, const Batch& batch, const std::vector<double>& direction,
                 double step, std::vector<float>& parameters, size_t first) {
  const std::vector<float> saved = parameters;
  std::vector<float> probabilities;
  double loss[2];
  for (const int sign : {1, -1}) {
    for (size_t i = 0; i < direction.size(); ++i) {
      parameters[first + i] = static_cast<float>(saved[first + i] + sign * step * direction[i]);
    }
    loss[sign > 0] = run.Predict(batch, &probabilities);
  }
  parameters = saved;
  return (loss[1] - loss[0]) / (2 * step);
}

// Compares the slope of the loss along a direction with <gradient, direction>. The direction is the
// gradient's own (a large signal) plus noise of the same length (which reveals missing components).
// One of the steps must agree: a large one may cross a kink of relu, a small one is lost in
// rounding, but a wrong gradient disagrees at all of them.
void CheckAlong(ModelRun& run, const Batch& batch, std::span<const float> gradient,
                std::vector<float>& parameters, size_t first) {
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
  std::string measured;
  for (const double step : {2e-3, 5e-4, 1e-4, 2e-5}) {
    const double slope = LossSlope(run, batch, direction, step, parameters, first);
    if (std::fabs(slope - expected) <= 0.02 * norm + 1e-3) return;
    measured += " " + std::to_string(slope);
  }
  ADD_FAILURE() << "measured" << measured << ", gradient gives " << expected;
}

TEST_P(GradientTest, AgreesWithFiniteDifferences) {
  const std::unique_ptr<Executor> executor = NewInlineExecutor();
  ModelRun run(GetParam().job, *executor);
  const Batch batch = TestBatch(GetParam().job, GetParam().batch);
  ASSERT_TRUE(run.model().CheckBatch(batch).ok()) << run.model().CheckBatch(batch).message();
  const ModelRun::Gradients at = run.Step(batch);
  for (const DenseTensor& tensor : run.model().tensors()) {
    SCOPED_TRACE(tensor.name);
    const size_t first = tensor.first_chunk * kDenseChunkFloats;
    const std::span<const float> gradient = std::span(at.dense).subspan(first, tensor.size());
    if (tensor.name.starts_with("unused")) {
      for (const float g : gradient) ASSERT_EQ(g, 0.0f);
      continue;
    }
    CheckAlong(run, batch, gradient, run.dense(), first);
    for (size_t i = first + tensor.size(); i < first + tensor.num_chunks * kDenseChunkFloats; ++i) {
      ASSERT_EQ(at.dense[i], 0.0f) << "the filling is zero";
    }
  }
  for (size_t t = 0; t < run.job().tables.size(); ++t) {
    SCOPED_TRACE(run.job().tables[t].name);
    if (run.job().tables[t].dense) continue;
    run.row_shift()[t].assign(at.rows[t].size(), 0.0f);
    CheckAlong(run, batch, at.rows[t], run.row_shift()[t], 0);
  }
}

// Sums the gradients of each key, to compare batches with other key orders.
std::map<std::pair<size_t, Key>, std::vector<double>> ByKey(const ModelRun::Gradients& gradients,
                                                            const Job& job) {
  std::map<std::pair<size_t, Key>, std::vector<double>> by_key;
  for (size_t t = 0; t < job.tables.size(); ++t) {
    if (gradients.table_keys[t] < 0) continue;
    const std::vector<Key>& keys =
        gradients.sets[static_cast<size_t>(gradients.table_keys[t])].unique;
    for (size_t i = 0; i < keys.size(); ++i) {
      const auto row = gradients.rows[t].begin() + static_cast<ptrdiff_t>(i * job.tables[t].dim);
      by_key[{t, keys[i]}].assign(row, row + job.tables[t].dim);
    }
  }
  return by_key;
}

// Sums gradients and loss over the parts of a batch, and the absolute values: the size of the terms
// before they cancel.
struct SumOfParts {
  double loss = 0;
  std::vector<double> dense, dense_size;
  std::map<std::pair<size_t, Key>, std::vector<double>> rows, rows_size;

  void Add(const ModelRun::Gradients& part, const Job& job) {
    loss += part.loss_sum;
    dense.resize(part.dense.size());
    dense_size.resize(part.dense.size());
    for (size_t i = 0; i < dense.size(); ++i) {
      dense[i] += part.dense[i];
      dense_size[i] += std::fabs(part.dense[i]);
    }
    for (const auto& [key, values] : ByKey(part, job)) {
      std::vector<double>&sum = rows[key], &size = rows_size[key];
      sum.resize(values.size());
      size.resize(values.size());
      for (size_t d = 0; d < values.size(); ++d) {
        sum[d] += values[d];
        size[d] += std::fabs(values[d]);
      }
    }
  }
};

// Returns the most roundings of one term on its way to a gradient: the sums of each layer forward
// and backward, and the sum over the batch.
size_t RoundingsOnTheWay(ModelRun& run, const Batch& batch) {
  size_t roundings = batch.num_examples;
  for (const DenseTensor& tensor : run.model().tensors()) {
    for (const auto extent : tensor.shape) roundings += static_cast<size_t>(extent);
  }
  for (const SparseColumn& column : batch.sparse) roundings += column.keys.size();
  return roundings;
}

// The terms of a gradient are those of single examples. If the sum over the paths of one example
// cancels, its rounding is measured by paths that are larger than it: so by the largest sum of
// terms in the same tensor or table, not by each element's own.
TEST_P(GradientTest, PartsAddUpToTheWhole) {
  const std::unique_ptr<Executor> executor = NewInlineExecutor();
  ModelRun run(GetParam().job, *executor);
  const Batch batch = TestBatch(GetParam().job, GetParam().batch);
  const ModelRun::Gradients whole = run.Step(batch);
  const auto whole_rows = ByKey(whole, run.job());
  SumOfParts parts, examples;
  for (uint32_t first = 0; first < batch.num_examples;) {
    const uint32_t count = std::min(first % 2 + 12, batch.num_examples - first);
    parts.Add(run.Step(PartOf(batch, first, count)), run.job());
    first += count;
  }
  for (uint32_t i = 0; i < batch.num_examples; ++i) {
    examples.Add(run.Step(PartOf(batch, i, 1)), run.job());
  }
  const size_t roundings = RoundingsOnTheWay(run, batch);
  // A loss moves no more than its logit, and a logit that moves it is at most 1 + loss.
  EXPECT_NEAR(parts.loss, whole.loss_sum,
              SumsErrorBound(roundings, batch.num_examples + whole.loss_sum));
  for (const DenseTensor& tensor : run.model().tensors()) {
    const size_t first = tensor.first_chunk * kDenseChunkFloats;
    const auto sizes = std::span(examples.dense_size).subspan(first, tensor.size());
    const double bound = SumsErrorBound(roundings, *std::ranges::max_element(sizes));
    for (size_t i = first; i < first + tensor.size(); ++i) {
      ASSERT_NEAR(parts.dense[i], whole.dense[i], bound) << tensor.name << " at " << i - first;
    }
  }
  std::vector<double> table_size(run.job().tables.size());
  for (const auto& [key, sizes] : examples.rows_size) {
    for (const double size : sizes) {
      table_size[key.first] = std::max(table_size[key.first], size);
    }
  }
  ASSERT_EQ(parts.rows.size(), whole_rows.size());
  for (const auto& [key, values] : whole_rows) {
    const double bound = SumsErrorBound(roundings, table_size[key.first]);
    for (size_t d = 0; d < values.size(); ++d) {
      ASSERT_NEAR(parts.rows[key][d], values[d], bound) << run.job().tables[key.first].name;
    }
  }
}

TEST_P(GradientTest, ThreadsAndHistoryDoNotChangeABit) {
  BatchOptions large = GetParam().batch;
  large.num_examples = 600;
  const Batch batch = TestBatch(GetParam().job, large);
  std::vector<ModelRun::Gradients> results;
  for (const int threads : {1, 2, 4}) {
    const std::unique_ptr<Executor> executor = NewTbbExecutor(threads);
    ModelRun run(GetParam().job, *executor);
    if (threads == 2) {  // Earlier batches have no effect.
      large.num_examples = 900;
      run.Step(TestBatch(GetParam().job, large));
      run.Step(PartOf(batch, 0, 0));
      run.Step(PartOf(batch, 5, 77));
    }
    results.push_back(run.Step(batch));
  }
  for (const ModelRun::Gradients& result : results) {
    EXPECT_EQ(result.loss_sum, results[0].loss_sum);
    EXPECT_EQ(result.dense, results[0].dense);
    EXPECT_EQ(result.rows, results[0].rows);
  }
}

// Rows are ready before all dense gradients are, and no bit changes.
TEST_P(GradientTest, RowsFirstChangesNoBit) {
  const std::unique_ptr<Executor> executor = NewTbbExecutor(2);
  ModelRun run(GetParam().job, *executor);
  const Batch batch = TestBatch(GetParam().job, GetParam().batch);
  const ModelRun::Gradients whole = run.Step(batch);
  std::vector<float> dense_then;
  const ModelRun::Gradients rows_first = run.StepRowsFirst(batch, &dense_then);
  EXPECT_EQ(rows_first.loss_sum, whole.loss_sum);
  EXPECT_EQ(rows_first.rows, whole.rows);
  EXPECT_EQ(rows_first.dense, whole.dense);
  if (run.model().tensors().size() > 1) {
    EXPECT_NE(dense_then, whole.dense);
  }
  std::vector<float> none;
  EXPECT_EQ(run.StepRowsFirst(PartOf(batch, 0, 0), &none).dense,
            std::vector<float>(run.model().dense_floats(), 0.0f));
}

TEST_P(GradientTest, EmptyBatchGivesNothing) {
  const std::unique_ptr<Executor> executor = NewInlineExecutor();
  ModelRun run(GetParam().job, *executor);
  const ModelRun::Gradients empty =
      run.Step(PartOf(TestBatch(GetParam().job, GetParam().batch), 0, 0));
  EXPECT_EQ(empty.loss_sum, 0.0);
  EXPECT_EQ(empty.dense, std::vector<float>(run.model().dense_floats(), 0.0f));
  for (const std::vector<float>& rows : empty.rows) EXPECT_TRUE(rows.empty());
}

INSTANTIATE_TEST_SUITE_P(Models, GradientTest, testing::ValuesIn(Cases()),
                         [](const auto& instance) { return instance.param.name; });

}  // namespace
}  // namespace hdps
