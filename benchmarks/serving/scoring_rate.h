// Measures how many rows a second a checkpoint scores in this process, without requests.
#pragma once

#include <cstddef>
#include <string>

#include "common/base/status.h"
#include "common/platform/file_system.h"

namespace hdps {

struct ScoringPlan {
  std::string checkpoint;  // As --checkpoint of hdps predict.
  std::string data;        // A file in Criteo's layout, as the job's own data are.
  size_t batch = 32;       // Rows of a table; each call scores one.
  int calls = 1;           // That run side by side, each on a thread of its own.
  double seconds = 5;
};

// Returns rows a second over ready tables of the file's rows: parsing the file does not count, but
// reading and hashing the cells does, as in every scoring. kInvalidArgument if the data do not fit
// the checkpoint.
Result<double> ScoringRate(FileSystem& files, const ScoringPlan& plan);

}  // namespace hdps
