// Answers for a bounded part of the job's evaluation data, as a caller would get them.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "common/base/status.h"
#include "common/platform/file_system.h"
#include "tools/serve/served_model.h"
#include "tools/serve/watch/answer_sums.h"

namespace hdps {

struct Job;

// Rows of the job's first evaluation set, held in memory so that each version can score them.
//
// Invariant: they are at most kRowsMax, the first that the files have.
class EvaluationAnswers {
 public:
  static constexpr uint64_t kRowsMax = 8192;

  // Reads the rows. kInvalidArgument says why there are none: the job has no evaluation set, or its
  // files are not on this machine.
  static Result<EvaluationAnswers> Read(FileSystem& files, const Job& job);

  // Scores all rows by the version at hand, and adds the answers up. Rows that the model refuses
  // are left out. kInvalidArgument if no row is left.
  Result<AnswerTotals> Score(ServedModel& model, size_t tasks) const;

 private:
  // Each is scored as one request: few enough rows that there are many requests, whose differences
  // tell the error of the mean.
  static constexpr uint64_t kRowsOfRequest = 32;

  std::vector<std::shared_ptr<const ColumnTable>> tables_;
};

}  // namespace hdps
