// Scores data with a model, as workers do for kEvaluate.
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

// Examples in one worker's step: enough for efficient matrix products, and little memory.
inline constexpr uint32_t kEvaluationExamples = 4096;

struct ScoreSums {
  double loss_sum = 0;
  double weight_sum = 0;  // Sum of the examples' weights.
  uint64_t examples = 0;
  uint64_t bad_rows = 0;  // Bad rows that were left out.
  LabelTally labels;      // Tally of the examples' labels.

  // Adds a scored batch, but no bad rows.
  void Add(const Batch& batch, double batch_loss_sum);
};

// Is called with the scores of each batch, laid out as by Model::Predict.
using TakeScores = std::function<Status(const Batch& batch, std::span<const float> scores)>;
// Supplies the rows of steps. `ask`, if set, is called with a step while the step before it is
// still being scored, so that its rows can be requested. `fetch` returns the rows: rows[table] is
// [keys of the table * dim], and empty for the dense table.
struct RowSource {
  std::function<void(const PreparedStep& step)> ask;
  std::function<Status(const PreparedStep& step, std::vector<std::vector<float>>* rows)> fetch;
};

// Returns the evaluation set of that name; the job's first if `name` is empty. kInvalidArgument if
// there is none.
Result<EvalSet> FindEvalSet(const Job& job, const std::string& name);

// Options for reading part `part` of `num_parts` of the set, in the order of the files.
PipelineOptions EvaluationOptions(const Job& job, const EvalSet& set, uint32_t part,
                                  uint32_t num_parts);

// Scores data one step at a time.
//
// Invariant: while one step is scored, the rows of the next one are on their way.
class StepScorer {
 public:
  // Requires: all arguments outlive it; `steps` was started with EvaluationOptions; the model's
  // dense weights are set.
  StepScorer(const Job& job, Model& model, StepPipeline& steps, RowSource source);

  // Scores the next step that has examples; does nothing if there is none.
  Status ScoreStep(const TakeScores& take);
  bool at_end() const { return begun_ && next_ == nullptr; }
  const ScoreSums& sums() const { return sums_; }  // The sums so far.

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

// Collects scores of examples in the layout that ScoreBook takes.
struct ExampleScores {
  std::vector<float> scores, labels, weights;
  std::vector<Key> groups;
  void Clear();
  // Appends the scores `of_batch`, laid out as for TakeScores.
  void Add(const Job& job, const Batch& batch, std::span<const float> of_batch);
};

}  // namespace hdps
