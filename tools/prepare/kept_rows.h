// Parses the rows of a job beforehand, so that all jobs on the same data find them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "common/platform/file_system.h"

namespace hdps {

struct Job;

// Rows that the job trains on or evaluates on.
struct KeptRows {
  std::string set;   // "train", or the name of an evaluation set.
  std::string path;  // The file they are in.
  uint64_t rows = 0;
  uint64_t bytes = 0;
  bool were_there = false;  // The file was there already, and fits.
};

// Reads all files of the job once and writes files of rows to data.cache_path. Errors:
// kInvalidArgument without such a folder, and where training would end because of bad rows;
// kIoError if the disk does not take them.
Result<std::vector<KeptRows>> KeepRowsOf(const Job& job, FileSystem& files);
// Says it in a line for each set.
std::string DescribeKeptRows(const std::vector<KeptRows>& kept);

}  // namespace hdps
