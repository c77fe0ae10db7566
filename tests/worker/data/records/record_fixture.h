// Jobs on the files of tests/worker/data/records/files.
#pragma once

#include <string>
#include <vector>

#include "common/job/job_spec.h"

namespace hdps {

// Returns the bytes of a file of the folder; a failure of the test if it cannot be read.
std::string BytesOfRecordFile(const std::string& name);
// Returns the job of rows.csv and rows.parquet, with `more` behind the settings of its data.
Job RowsJob(const std::string& more = "");
// Returns a job whose columns have these names and are numbers.
Job NumbersJob(const std::vector<std::string>& names);

}  // namespace hdps
