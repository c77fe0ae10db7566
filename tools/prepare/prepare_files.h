// Makes a job that trains on given files, and says what they contain: hdps prepare without its
// flags.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "common/platform/file_system.h"
#include "tools/prepare/data_wish.h"

namespace hdps {

// Holds the arguments of hdps prepare, which has a help text for each.
struct PrepareRequest {
  std::vector<std::string> files, eval;  // Names, folders, or patterns.
  std::string out;
  std::string model;   // A recipe; empty: the usual one for the task.
  DataWish data = {};  // Without `task`.
  std::string task;    // A word of TaskKind; empty: it is found.
  int64_t min_count = 0;
  std::string split = "rows";
  bool cache = false;  // The rows are kept parsed in OUT/rows, too.
  // Chooses one of several tasks that fit the label; none, or no function: the first.
  std::function<std::optional<TaskKind>(const std::string& label,
                                        const std::vector<TaskKind>& choices)>
      ask;
};

struct PreparedFiles {
  std::string job, report_file;  // Paths.
  std::string report;            // The text of that file.
};

// Reads the files and writes OUT/job.json, OUT/report.txt, and OUT/vocabulary.keys if min_count is
// not 0. Errors: kInvalidArgument names the flag or the place in a file.
Result<PreparedFiles> PrepareFiles(FileSystem& files, const PrepareRequest& request);

}  // namespace hdps
