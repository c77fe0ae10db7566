// Makes jobs, batches and rows for tests of the model, in memory from a seed.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "common/job/activation.h"
#include "common/job/job_spec.h"
#include "common/job/model_graph.h"
#include "common/job/recipes/recipe_record.h"
#include "common/job/spec/pooling.h"
#include "worker/model/model.h"

namespace hdps {

struct DataSpec;
struct LayerSpec;

// Returns a csv spec with numeric columns N0.. and categorical columns C0...
DataSpec TestData(uint32_t num_numeric, uint32_t num_sparse);

// Returns a small model of a known type over TestData(5, 4), on the CPU. mlp has 3 classes; `own`
// has more settings of the recipe.
Job TestJob(const std::string& type, const std::map<std::string, RecipeValue>& own = {});
// Returns an explicit graph over TestData(5, 4): tables of dim 4 and 1 called "deep" and "wide".
Job TestGraph(std::vector<LayerSpec> layers);

// Returns a graph over all inputs with a dense layer with the activation, layer_norm, and dropout
// if `rate` is above 0, beside a wide part.
Job NormalizedGraph(Activation activation, double rate);

// Returns the same with batch_norm: dense, batch_norm, activation, dropout.
Job BatchNormGraph(Activation activation, double rate);

struct LayerOptions {
  uint32_t units = 0;
  std::string table;
  Activation activation = Activation::kNone;
  Pooling pooling = Pooling::kSum;
  Combine combine = Combine::kConcat;
};
LayerSpec TestLayer(const std::string& name, const std::string& kind,
                    std::vector<std::string> inputs, const LayerOptions& options = {});

// Up to `keys_max` keys per bag; some bags are empty if it is more than one.
struct BatchOptions {
  uint32_t num_examples = 50;
  uint32_t keys_max = 1;
  bool weighted = false;
  uint64_t seed = 1;
};
Batch TestBatch(const Job& job, const BatchOptions& options);
// Returns rows [first, first + count) of a batch.
Batch PartOf(const Batch& batch, uint32_t first, uint32_t count);

// A model with parameters, and with rows for any key as a function of (table, key).
class ModelRun {
 public:
  ModelRun(const Job& job, Executor& executor);

  struct Gradients {
    double loss_sum = 0;
    std::vector<float> dense;
    std::vector<KeySet> sets;
    std::vector<int> table_keys;
    std::vector<std::vector<float>> rows;  // [tables][unique * dim]
  };
  Gradients Step(const Batch& batch);
  // Runs a step with rows and gradients in separate memory, each in `pieces` pieces.
  Gradients StepInPieces(const Batch& batch, size_t pieces);
  // Runs a step and returns loss and row gradients as they are when the rows are done; `dense_then`
  // gets the dense gradients of that time.
  Gradients StepRowsFirst(const Batch& batch, std::vector<float>* dense_then);
  double Predict(const Batch& batch, std::vector<float>* probabilities);

  Model& model() { return *model_; }
  const Job& job() const { return job_; }
  std::vector<float>& dense() { return dense_; }
  // Values that a test adds to the rows of each table.
  std::vector<std::vector<float>>& row_shift() { return row_shift_; }

 private:
  std::vector<TableInput> Inputs(const Batch& batch);
  Gradients Step(const Batch& batch, std::span<const TableInput> inputs);
  Gradients Empty() const;

  Job job_;
  std::unique_ptr<Model> model_;
  std::vector<float> dense_;
  std::vector<KeySet> sets_;
  std::vector<int> table_keys_;
  std::vector<std::vector<float>> rows_, row_shift_;  // [tables]
};

}  // namespace hdps
