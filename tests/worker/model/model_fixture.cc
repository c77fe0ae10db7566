// Makes the inputs of the model's tests.
#include "tests/worker/model/model_fixture.h"

#include <glog/logging.h>

#include <utility>

#include "common/job/job_facts.h"
#include "common/job/recipes/recipe_graph.h"
#include "common/job/spec/data_spec.h"
#include "common/job/spec/layer_spec.h"
#include "common/job/spec/loss_kind.h"
#include "common/job/spec/model_spec.h"
#include "common/job/spec/table_spec.h"
#include "common/platform/random.h"
#include "tests/kernels/cut_rows.h"

namespace hdps {

DataSpec TestData(uint32_t num_numeric, uint32_t num_sparse) {
  DataSpec data;
  data.format = DataFormat::kCsv;
  ColumnSpec label;
  label.name = "label";
  label.type = ColumnType::kLabel;
  data.columns.push_back(label);
  for (uint32_t i = 0; i < num_numeric + num_sparse; ++i) {
    ColumnSpec column;
    const bool numeric = i < num_numeric;
    column.type = numeric ? ColumnType::kNumeric : ColumnType::kMulti;
    column.name = numeric ? "N" + std::to_string(i) : "C" + std::to_string(i - num_numeric);
    data.columns.push_back(column);
  }
  return data;
}

Job TestJob(const std::string& type, const std::map<std::string, RecipeValue>& own) {
  Job job;
  job.data = TestData(5, 4);
  ModelRecipe recipe;
  recipe.embedding_dim = 6;
  recipe.hidden = {16, 8};
  recipe.own = own;
  recipe.own["bottom_hidden"] = std::vector<uint32_t>{10};
  if (type == "mlp") recipe.own["classes"] = 3u;
  if (type == "din" || type == "dien" || type == "bst" || type == "sasrec") {
    // A loss that is in the gradients alone has no differences.
    recipe.own["auxiliary_weight"] = 0.0;
    recipe.own["history"] = std::string("C0");
    recipe.own["target"] = std::string("C1");
  }
  if (type == "two_tower") {
    recipe.own["user_features"] = std::vector<std::string>{"C0", "C1"};
    recipe.own["item_features"] = std::vector<std::string>{"C2", "C3"};
  }
  if (type == "mmoe" || type == "ple" || type == "esmm") {
    ColumnSpec second = job.data.columns[0];
    second.name = "label1";
    job.data.columns.insert(job.data.columns.begin() + 1, second);
    job.model.tasks = {{.label = "label"}, {.label = "label1"}};
  }
  job.model.type = type;
  Result<ModelGraph> graph = BuildModel(job.model, recipe, FeaturesOf(job.data));
  CHECK(graph.ok()) << graph.status().message();
  job.tables = graph->tables;
  job.tables.push_back(DenseTable(OptimizerSpec()));
  job.model.layers = graph->layers;
  job.model.loss = graph->loss.value_or(LossKind::kLogloss);
  job.model.device = "cpu";
  return job;
}

Job TestGraph(std::vector<LayerSpec> layers) {
  Job job;
  job.data = TestData(5, 4);
  TableSpec deep, wide;
  deep.name = "deep";
  deep.dim = 4;
  wide.name = "wide";
  wide.dim = 1;
  job.tables = {deep, wide, DenseTable(OptimizerSpec())};
  job.model.type = "graph";
  job.model.layers = std::move(layers);
  job.model.device = "cpu";
  return job;
}

LayerSpec TestLayer(const std::string& name, const std::string& kind,
                    std::vector<std::string> inputs, const LayerOptions& options) {
  LayerSpec layer;
  layer.name = name;
  layer.kind = kind;
  layer.inputs = std::move(inputs);
  layer.units = options.units;
  layer.table = options.table;
  layer.activation = options.activation;
  layer.pooling = options.pooling;
  layer.combine = options.combine;
  return layer;
}

Job NormalizedGraph(Activation activation, double rate) {
  LayerOptions deep, wide, hidden, one;
  deep.table = "deep";
  wide.table = "wide";
  wide.combine = Combine::kSum;
  hidden.units = 8;
  hidden.activation = activation;
  one.units = 1;
  std::vector<LayerSpec> layers = {
      TestLayer("e", "embedding", {}, deep),  TestLayer("n", "numeric", {}),
      TestLayer("all", "concat", {"e", "n"}), TestLayer("h", "dense", {"all"}, hidden),
      TestLayer("norm", "layer_norm", {"h"}), TestLayer("drop", "dropout", {"norm"}),
      TestLayer("z", "dense", {"drop"}, one), TestLayer("w", "embedding", {}, wide),
      TestLayer("logit", "sum", {"z", "w"})};
  layers[5].numbers["rate"] = rate;
  if (rate == 0) {
    layers[6].inputs = {"norm"};
    layers.erase(layers.begin() + 5);
  }
  return TestGraph(std::move(layers));
}

Job BatchNormGraph(Activation activation, double rate) {
  Job job = NormalizedGraph(Activation::kNone, rate);
  std::vector<LayerSpec>& layers = job.model.layers;
  layers[4].kind = "batch_norm";
  if (activation == Activation::kNone) return job;
  LayerOptions bend;
  bend.activation = activation;
  layers[5].inputs = {"act"};
  layers.insert(layers.begin() + 5, TestLayer("act", "activation", {"norm"}, bend));
  return job;
}

Batch TestBatch(const Job& job, const BatchOptions& options) {
  const FeatureNames names = FeaturesOf(job.data);
  Random random(options.seed);
  Batch batch;
  batch.num_examples = options.num_examples;
  batch.num_numeric = static_cast<uint32_t>(names.numeric.size());
  const uint32_t classes = job.model.loss == LossKind::kSoftmax ? 3 : 2;
  batch.num_labels = static_cast<uint32_t>(TasksOf(job.model).size());
  for (uint32_t i = 0; i < options.num_examples; ++i) {
    for (uint32_t t = 0; t < batch.num_labels; ++t) {
      batch.labels.push_back(static_cast<float>(random.Below(classes)));
    }
    for (uint32_t j = 0; j < batch.num_numeric; ++j) {
      batch.numeric.push_back(static_cast<float>(random.Normal()));
    }
  }
  for (size_t f = 0; f < names.sparse.size(); ++f) {
    SparseColumn column;
    column.offsets.push_back(0);
    for (uint32_t i = 0; i < options.num_examples; ++i) {
      const uint64_t keys = options.keys_max == 1 ? 1 : random.Below(options.keys_max + 1);
      for (uint64_t k = 0; k < keys; ++k) {
        // Some keys are shared by two features.
        column.keys.push_back(MixBits(f / 2 * 1000 + random.Below(20)));
        if (options.weighted) column.weights.push_back(static_cast<float>(random.Normal()));
      }
      column.offsets.push_back(static_cast<uint32_t>(column.keys.size()));
    }
    batch.sparse.push_back(std::move(column));
  }
  return batch;
}

Batch PartOf(const Batch& batch, uint32_t first, uint32_t count) {
  Batch part;
  part.num_examples = count;
  part.num_numeric = batch.num_numeric;
  part.num_labels = batch.num_labels;
  part.labels.assign(batch.labels.begin() + first * batch.num_labels,
                     batch.labels.begin() + (first + count) * batch.num_labels);
  const size_t columns = batch.num_numeric;
  part.numeric.assign(batch.numeric.begin() + static_cast<ptrdiff_t>(first * columns),
                      batch.numeric.begin() + static_cast<ptrdiff_t>((first + count) * columns));
  for (const SparseColumn& column : batch.sparse) {
    SparseColumn cut;
    const uint32_t begin = column.offsets[first], end = column.offsets[first + count];
    for (uint32_t i = first; i <= first + count; ++i)
      cut.offsets.push_back(column.offsets[i] - begin);
    cut.keys.assign(column.keys.begin() + begin, column.keys.begin() + end);
    if (!column.weights.empty()) {
      cut.weights.assign(column.weights.begin() + begin, column.weights.begin() + end);
    }
    part.sparse.push_back(std::move(cut));
  }
  return part;
}

ModelRun::ModelRun(const Job& job, Executor& executor) : job_(job) {
  Result<std::unique_ptr<Model>> model = NewModel(job, executor);
  CHECK(model.ok()) << model.status().message();
  model_ = *std::move(model);
  dense_ = model_->InitialDense(job.seed);
  // Moves biases away from zero, where a wrong gradient may be hidden.
  for (size_t i = 0; i < dense_.size(); ++i) dense_[i] += 0.1f * UnitFloat(RandomAt(99, i));
  rows_.resize(job.tables.size());
  row_shift_.resize(job.tables.size());
}

std::vector<TableInput> ModelRun::Inputs(const Batch& batch) {
  KeyFinder finder(job_);
  finder.Find(batch, &sets_);
  table_keys_ = finder.table_keys();
  std::vector<TableInput> inputs(job_.tables.size());
  for (size_t t = 0; t < inputs.size(); ++t) {
    if (table_keys_[t] < 0) continue;
    const KeySet& set = sets_[static_cast<size_t>(table_keys_[t])];
    const uint32_t dim = job_.tables[t].dim;
    rows_[t].clear();
    for (const Key key : set.unique) {
      for (uint32_t d = 0; d < dim; ++d) {
        rows_[t].push_back(UnitFloat(RandomAt(key + t, d)) - 0.5f);
      }
    }
    for (size_t i = 0; i < row_shift_[t].size(); ++i) rows_[t][i] += row_shift_[t][i];
    inputs[t] = {&set, rows_[t]};
  }
  return inputs;
}

ModelRun::Gradients ModelRun::Step(const Batch& batch) { return Step(batch, Inputs(batch)); }

ModelRun::Gradients ModelRun::StepInPieces(const Batch& batch, size_t pieces) {
  std::vector<TableInput> inputs = Inputs(batch);
  std::vector<CutRows> rows, places;
  rows.reserve(inputs.size());
  places.reserve(inputs.size());
  for (size_t t = 0; t < inputs.size(); ++t) {
    const uint32_t dim = job_.tables[t].dim;
    std::vector<size_t> borders;  // The pieces have different sizes.
    for (size_t p = 1; p < pieces; ++p) {
      borders.push_back(p * (inputs[t].rows.size() / dim) / (pieces + 1));
    }
    rows.emplace_back(rows_[t], dim, borders);
    inputs[t].rows = rows[t].pieces();
    // Every value must be replaced.
    places.emplace_back(std::vector<float>(inputs[t].rows.size(), 777.0f), dim, borders);
    inputs[t].gradients = places[t].pieces();
  }
  Gradients gradients = Step(batch, inputs);
  for (size_t t = 0; t < places.size(); ++t) {
    if (inputs[t].rows.empty()) continue;
    CHECK(gradients.rows[t].empty()) << "not in two places";
    gradients.rows[t] = places[t].Joined();
  }
  return gradients;
}

ModelRun::Gradients ModelRun::Step(const Batch& batch, std::span<const TableInput> inputs) {
  model_->SetDense(dense_);
  StepResult result;
  Gradients gradients = Empty();
  model_->Step(batch, inputs, &result, gradients.dense);
  gradients.loss_sum = result.loss_sum;
  gradients.rows = std::move(result.row_gradients);
  return gradients;
}

ModelRun::Gradients ModelRun::StepRowsFirst(const Batch& batch, std::vector<float>* dense_then) {
  const std::vector<TableInput> inputs = Inputs(batch);
  model_->SetDense(dense_);
  StepResult result;
  Gradients gradients = Empty();
  int calls = 0;
  model_->Step(batch, inputs, &result, gradients.dense, [&] {
    ++calls;
    gradients.loss_sum = result.loss_sum;
    gradients.rows = std::move(result.row_gradients);
    *dense_then = gradients.dense;
  });
  CHECK_EQ(calls, 1);
  return gradients;
}

ModelRun::Gradients ModelRun::Empty() const {
  Gradients gradients;
  gradients.dense.assign(model_->dense_floats(), 777.0f);  // Every value must be replaced.
  gradients.sets = sets_;
  gradients.table_keys = table_keys_;
  return gradients;
}

double ModelRun::Predict(const Batch& batch, std::vector<float>* probabilities) {
  const std::vector<TableInput> inputs = Inputs(batch);
  model_->SetDense(dense_);
  return model_->Predict(batch, inputs, probabilities);
}

}  // namespace hdps
