// Makes a synthetic click log or pictures of ten classes, with a job beside them: hdps generate
// without its flags.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/base/status.h"
#include "common/platform/file_system.h"
#include "tools/synthetic/synthetic_log.h"

namespace hdps {

// Holds the flags of hdps generate, which has a help text for each.
struct GenerateRequest {
  std::string out;
  std::string kind = "log";
  std::string format = "csv";
  std::string model;     // A TeacherFamily; empty: linear.
  SyntheticLogSpec log;  // Without `family`; rows, eval_rows and seed are of both kinds.
  std::optional<double> noise;
};

struct GeneratedFiles {
  std::string job;  // Path of the job file.
  // What can be reached on the evaluation rows: auc, expected_auc, logloss and ctr of the planted
  // model, or the accuracy of the nearest prototype.
  std::vector<std::pair<std::string, double>> figures;
  std::string text;  // What the command prints.
};

// Writes the data and OUT/job.json. An existing job is kept, because its owner may have changed it;
// the text says so. Errors: kInvalidArgument names the flag.
Result<GeneratedFiles> GenerateFiles(FileSystem& files, const GenerateRequest& request);

}  // namespace hdps
