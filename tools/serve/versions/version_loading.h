// Loads a checkpoint beside the version that answers, and judges whether it may answer too.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "common/platform/executor.h"
#include "common/platform/file_system.h"
#include "common/protocol/manifest.h"
#include "tools/scoring/row_scorer.h"
#include "tools/scoring/serving_folder.h"
#include "tools/serve/requests/score_request.h"

namespace hdps {

struct Job;
class RequestSample;

// Returns an executor for up to `callers` threads at once, each of which does all of its work by
// itself. So loading never takes a thread from an answer, nor one answer from another.
std::unique_ptr<Executor> NewCallersExecutor(int callers);

// Checks that a checkpoint is of the job that is served; of its settings those may differ that do
// when a job goes on. kInvalidArgument names the differences.
Status CheckOfServedJob(const Job& served, const Manifest& manifest);

// Returns what a checkpoint needs at least. kResourceExhausted says what is missing if that does
// not fit beside what the process has now.
Result<ServingNeed> NeedThatFits(FileSystem& files, const FoundCheckpoint& found);

// Scores the rows of a sample once, so that their rows and the model's buffers are at hand, and
// throws the scores away. kInvalidArgument if one is not finite or a row is refused. A row whose
// score by the version at hand is not finite, or almost too large for a float, does not count: a
// caller who sends odd numbers must not keep new versions out.
// Requires: `at_hand` is not null unless the sample is empty.
Status WarmUp(const RequestSample& sample, RowScorer* at_hand, RowScorer* scorer);

// Bytes of the files of some parts.
uint64_t BytesOf(const std::vector<CheckpointPart>& parts);

}  // namespace hdps
