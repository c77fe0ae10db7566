// Implements hdps evaluate and hdps predict: the scores of a checkpoint for files.
#pragma once

#include <ostream>

#include "common/base/status.h"
#include "common/platform/executor.h"
#include "common/platform/file_system.h"
#include "tools/common_flags.h"

namespace hdps {

// With `flags.process` one process of several scores its part of every batch, and only the process
// of rank 0 prints or writes.
//
// Both score the files of `flags.data`. Without it they score the evaluation data of the job, and
// without a job those of the checkpoint's job.

// Prints the number of examples and the figures of train.metrics to `to`; with softmax, also the
// accuracy.
Status RunEvaluate(const CommonFlags& flags, FileSystem& files, Executor& executor,
                   std::ostream& to);

// Writes one line per row, in order: its probability, with softmax one per class and with several
// tasks one per task, separated by blanks; with other losses the score. The files need the columns
// of the training, but no labels, weights or groups. The first row that cannot be scored is
// kInvalidArgument with its place, or gets nan with `flags.nan_for_bad_rows`. The lines go to the
// file `flags.out`, which a failure leaves unchanged, or to `to` if there is none.
Status RunPredict(const CommonFlags& flags, FileSystem& files, Executor& executor,
                  std::ostream& to);

}  // namespace hdps
