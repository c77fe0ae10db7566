// Writes the page of one run, or of two side by side: hdps report without its flags.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "common/base/status.h"
#include "common/platform/file_system.h"

namespace hdps {

struct ReportFile {
  std::string path, page;
  // What is missing or damaged in the folder of a run: the folder and a sentence.
  std::vector<std::pair<std::string, std::string>> notes;
};

// Writes the page of the runs in `folders`, one or two values of --out, to `path`; an empty path is
// report.html in the first folder. Errors: kInvalidArgument if a folder is none of a run, or if the
// file cannot be written.
Result<ReportFile> WriteReport(FileSystem& files, const std::vector<std::string>& folders,
                               const std::string& path);

}  // namespace hdps
