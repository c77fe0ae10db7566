// Files as command lines name them, and those that must not be written over.
#pragma once

#include <string>
#include <vector>

#include "common/base/status.h"
#include "common/platform/file_system.h"
#include "common/platform/output_file.h"

namespace hdps {

struct Job;

// What a flag that takes FILE,... names: `text` itself where there is a file of this name, else
// what stands between its commas. A part that begins with a quote holds commas up to the next
// quote: "a,b.csv",c.csv.
std::vector<std::string> SplitFileList(FileSystem& files, const std::string& text);

// The files that every command reads that is given a job: its file, where it was named, the files
// of its data and a strategy that it loads.
std::vector<InputFile> InputsOf(const std::string& job_file, const Job& job);
// kInvalidArgument where parallel.strategy_ckpt_save_file is one of these; the file that the
// strategy is loaded from may be saved to.
Status RefuseSavedStrategy(FileSystem& files, const std::string& job_file, const Job& job);

}  // namespace hdps
