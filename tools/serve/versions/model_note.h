// What a served model takes and gives, derived from its job.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "tools/scoring/row_scorer.h"
#include "tools/serve/requests/score_request.h"

namespace hdps {

struct DataSpec;
struct Job;

// Describes the model under a name. `columns` is RowScorer::columns(). Inputs are the columns of
// features, as they stand in files. Outputs have the names of an exported ONNX model:
// "probability", "probabilities", "score", of several tasks "LABEL.probability", and "logit".
// kInvalidArgument if rows of the job's format cannot be sent.
Result<ModelNote> NoteOf(const std::string& name, const Job& job, const DataSpec& columns);

// Returns the wanted outputs of scored rows, in the order of `wanted`: one of each kind, but one a
// task of predictions. kInvalidArgument if the model has no such output.
Result<std::vector<OutputColumn>> OutputColumns(const ModelNote& note, const Job& job,
                                                std::span<const ScoreOutput> wanted,
                                                const ScoredRows& scored);

}  // namespace hdps
