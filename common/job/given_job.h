// A job as a person gave it, without what follows from it.
#pragma once

#include <string>
#include <vector>

#include "common/base/status.h"
#include "common/platform/file_system.h"

namespace hdps {

// The job file's own keys with the overrides among them, as JSON. LoadJob has taken both.
Result<std::string> GivenJob(FileSystem& files, const std::string& path,
                             const std::vector<std::string>& overrides);

}  // namespace hdps
