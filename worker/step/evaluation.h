// Scores data with a model: what a worker does for kEvaluate, and the tools with a checkpoint.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "common/job/eval_sets.h"
#include "common/protocol/tallies.h"
#include "worker/model/model.h"
#include "worker/step/step_pipeline.h"

namespace hdps {

struct Job;

struct ScoreSums {
  double loss_sum = 0;
  double weight_sum = 0;  // Of the examples' weights.
  uint64_t examples = 0;
  uint64_t bad_rows = 0;  // Refused and passed over.
  LabelTally labels;      // Of the examples.
};

// Takes a batch's scores, as Model::Predict gives them.
using TakeScores = std::function<Status(const Batch& batch, std::span<const float> scores)>;
// Where the rows of steps come from. `ask`, if there is one, is told of a step while the one before
// it is still being scored. `fetch` gives its rows: rows[table] is [keys of the table * dim], empty
// for the dense table.
struct RowSource {
  std::function<void(const PreparedStep& step)> ask;
  std::function<Status(const PreparedStep& step, std::vector<std::vector<float>>* rows)> fetch;
  // If there is one, it scores in place of the model, as Model::Predict, and nothing is fetched.
  std::function<Result<double>(const Batch& batch, std::vector<float>* scores)> score = nullptr;
};

// Part `part` of `num_parts` of the set, in the order of the files.
PipelineOptions EvaluationOptions(const Job& job, const EvalSet& set, uint32_t part,
                                  uint32_t num_parts);

// Scores step by step.
//
// Invariant: while one step is scored, the next one's rows are on their way.
class StepScorer {
 public:
  // All of them outlive it. `steps` was started with EvaluationOptions, and the model's dense
  // weights are in place.
  StepScorer(const Job& job, Model& model, StepPipeline& steps, RowSource source);

  // The next step that has examples, if there is one.
  Status ScoreStep(const TakeScores& take);
  bool at_end() const { return begun_ && next_ == nullptr; }
  const ScoreSums& sums() const { return sums_; }  // So far.

 private:
  Status FindNext();

  Model& model_;
  StepPipeline& steps_;
  const RowSource source_;
  std::unique_ptr<PreparedStep> next_;
  bool begun_ = false;
  ScoreSums sums_;
  std::vector<std::vector<float>> rows_;
  std::vector<TableInput> inputs_;
  std::vector<float> scores_;
};

// Scores of examples as ScoreBook takes them.
struct ExampleScores {
  std::vector<float> scores, labels, weights;
  std::vector<Key> groups;
  void Clear();
  // Of a batch, as TakeScores is given them.
  void Add(const Job& job, const Batch& batch, std::span<const float> of_batch);
};

// Scores all that `steps` gives, in the order of the files; it was started with EvaluationOptions.
// The model's dense weights are in place.
Result<ScoreSums> ScoreSteps(const Job& job, Model& model, StepPipeline& steps,
                             const RowSource& source, const TakeScores& take);

}  // namespace hdps
