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

// One probability a line in the order of the rows; under softmax one a class, between blanks. The
// files have the columns the job was trained with, the label among them; it is not looked at. The
// lines go into the file `flags.out`, or to `to` where none is named.
Status RunPredict(const CommonFlags& flags, FileSystem& files, Executor& executor,
                  std::ostream& to);

}  // namespace hdps
