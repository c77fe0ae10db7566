// A job as a person or a program wrote it, without derived settings, and which of its settings are
// theirs.
#pragma once

#include <string>
#include <vector>

#include "common/base/status.h"
#include "common/job/job_file.h"
#include "common/job/words/setting_origin.h"
#include "common/platform/file_system.h"

namespace hdps {

// The text of a job (JSON), read from a file or made by a program.
struct WrittenJob {
  // The path of the file; otherwise a name for messages without '/', and then relative data paths
  // are searched from the working directory alone.
  std::string origin;
  std::string text;
};

// Reads a job file. Errors: kInvalidArgument if it cannot be read.
Result<WrittenJob> ReadWrittenJob(FileSystem& files, const std::string& path);

// Does what LoadJob() of job_file.h does with a file.
Result<Job> LoadJob(FileSystem& files, const WrittenJob& text,
                    const std::vector<std::string>& overrides,
                    DataFiles needed = DataFiles::kMustExist);

// Returns the job's own keys with the overrides applied, as JSON. LoadJob() must have accepted
// both.
Result<std::string> GivenJob(const WrittenJob& text, const std::vector<std::string>& overrides);

// Returns all settings of `job` in the order of PrintJob(). `text` and `overrides` are what it was
// loaded from, and `overrides_from` says where those came from. A layer that a recipe has made
// comes from where the model does. Errors: kInvalidArgument if LoadJob() would not accept both.
Result<std::vector<SettingOrigin>> OriginsOf(const Job& job, const WrittenJob& text,
                                             const std::vector<std::string>& overrides,
                                             const std::string& overrides_from);

}  // namespace hdps
