// Scores data with a model: what a worker does for kEvaluate, and the tools with a checkpoint.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "common/job/eval_sets.h"
#include "common/job/job.h"
#include "common/protocol/messages.h"
#include "worker/model/model.h"
#include "worker/step/step_pipeline.h"

namespace hdps {

struct ScoreSums {
  double loss_sum = 0;
  uint64_t examples = 0;
  uint64_t bad_rows = 0;  // Refused and passed over.
  LabelTally labels;      // Of the examples.
};

// Takes a batch's scores: probabilities[n] of class 1, or [n * classes] under softmax.
using TakeScores = std::function<Status(const Batch& batch, std::span<const float> scores)>;
// Where the rows of steps come from. `ask`, if there is one, is told of a step while the one before
// it is still being scored. `fetch` gives its rows: rows[table] is [keys of the table * dim], empty
// for the dense table.
struct RowSource {
  std::function<void(const PreparedStep& step)> ask;
  std::function<Status(const PreparedStep& step, std::vector<std::vector<float>>* rows)> fetch;
};

// Part `part` of `num_parts` of the set, in the order of the files.
PipelineOptions EvaluationOptions(const Job& job, const EvalSet& set, uint32_t part,
                                  uint32_t num_parts);

// Scores all that `steps` gives, in the order of the files; it was started with EvaluationOptions.
// The model's dense weights are in place.
Result<ScoreSums> ScoreSteps(const Job& job, Model& model, StepPipeline& steps,
                             const RowSource& source, const TakeScores& take);

}  // namespace hdps
