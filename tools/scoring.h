// hdps evaluate and hdps predict: a checkpoint's scores for files.
#pragma once

#include <ostream>

#include "common/base/status.h"
#include "common/platform/executor.h"
#include "common/platform/file_system.h"
#include "tools/common_flags.h"

namespace hdps {

// Both score the files of `flags.data` or, where it names none, those of the job for evaluation;
// without a job, that of the checkpoint.

// Prints the examples and the figures of train.metrics (under softmax, accuracy too) to `to`.
Status RunEvaluate(const CommonFlags& flags, FileSystem& files, Executor& executor,
                   std::ostream& to);

// A line a row, in their order: its probability, under softmax one a class and of several tasks one
// a task, between blanks; under other losses the score. Files have the columns that the job was
// trained with; labels, weights and groups are not looked at, and a file may lack them. The first
// row that cannot be scored is kInvalidArgument, by its place, or has nan with
// `flags.nan_for_bad_rows`. The lines go into the file `flags.out`, which a failure leaves as it
// was, or to `to` where none is named.
Status RunPredict(const CommonFlags& flags, FileSystem& files, Executor& executor,
                  std::ostream& to);

}  // namespace hdps
