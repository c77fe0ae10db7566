// hdps evaluate and hdps predict: a checkpoint's scores for files.
#pragma once

#include <ostream>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "common/platform/executor.h"
#include "common/platform/file_system.h"

namespace hdps {

struct ScoringOptions {
  std::string job;                     // Empty: the one kept in the checkpoint.
  std::vector<std::string> overrides;  // Of the job.
  std::string checkpoint;
  std::vector<std::string> data;  // Empty: the job's evaluation files.
  std::string out;                // predict: where the lines go; empty: to `to`.
};

// Prints examples, logloss and AUC (accuracy instead of AUC under softmax) to `to`.
Status RunEvaluate(const ScoringOptions& options, FileSystem& files, Executor& executor,
                   std::ostream& to);

// One probability a line in the order of the rows; under softmax one a class, between blanks. The
// files have the columns the job was trained with, the label among them; it is not looked at.
Status RunPredict(const ScoringOptions& options, FileSystem& files, Executor& executor,
                  std::ostream& to);

}  // namespace hdps
