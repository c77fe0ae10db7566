// Scores the batches of files on several threads, and hands them over in the order of the rows.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "worker/data/batch.h"
#include "worker/step/batch_stream.h"
#include "worker/step/evaluation.h"

namespace hdps {

// A batch with what was made of it.
struct ScoredBatch {
  Batch batch;
  std::vector<float> scores;  // Laid out as by Model::Predict.
  double loss_sum = 0;
  // A caller fills these in beside other batches: lines of text, and how many of them are
  // of a row without a score.
  std::string lines;
  uint64_t rows_without = 0;
};

// Fills in scores and the sum of losses. Is called by several threads at once, each with its own
// number below that of the threads, and for batches with examples.
using ScoreBatch = std::function<Status(size_t thread, ScoredBatch* scored)>;
// Is called on the caller's thread with one batch after another.
using TakeBatch = std::function<Status(const ScoredBatch& scored)>;

// Scores all batches on `threads` threads, while the next ones are read and earlier ones are taken.
// An error ends it, and is that of the first batch that has one, whatever came first in time. At
// most threads + 2 batches are read and not yet taken, beside those of the stream.
Result<ScoreSums> ScoreInOrder(BatchStream& batches, size_t threads, const ScoreBatch& score,
                               const TakeBatch& take);

}  // namespace hdps
