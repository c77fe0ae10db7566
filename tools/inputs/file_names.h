// Parses files as command lines name them, and protects the inputs from being overwritten.
#pragma once

#include <string>
#include <vector>

#include "common/base/status.h"
#include "common/platform/file_system.h"
#include "common/platform/output_file.h"

namespace hdps {

struct Job;

// Splits the value of a flag that takes FILE,...: returns `text` itself if a file has this name,
// otherwise the parts between its commas. A part in double quotes may contain commas:
// "a,b.csv",c.csv.
std::vector<std::string> SplitFileList(FileSystem& files, const std::string& text);

// Returns the files that every command with a job reads: the job file, if it was named, the data
// files and a strategy that the job loads.
std::vector<InputFile> InputsOf(const std::string& job_file, const Job& job);
// Returns kInvalidArgument if parallel.strategy_ckpt_save_file is one of these files. It may be the
// file that the strategy is loaded from.
Status RefuseSavedStrategy(FileSystem& files, const std::string& job_file, const Job& job);

}  // namespace hdps
