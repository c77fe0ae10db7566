// A job as a person wrote it, without derived settings.
#pragma once

#include <string>
#include <vector>

#include "common/base/status.h"
#include "common/platform/file_system.h"

namespace hdps {

// Returns the job file's own keys with the overrides applied, as JSON. LoadJob() must have accepted
// both.
Result<std::string> GivenJob(FileSystem& files, const std::string& path,
                             const std::vector<std::string>& overrides);

}  // namespace hdps
