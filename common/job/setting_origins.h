// Tells of each setting of a job where its value comes from.
#pragma once

#include <string>
#include <vector>

#include "common/base/status.h"
#include "common/job/given_job.h"

namespace hdps {

struct SettingOrigin {
  std::string path, value;  // "train.batch_size", "256"
  std::string from;         // "default", "file", "--set" or "environment"
};

// Returns all settings of `job` in the order of PrintJob(). `text` and `overrides` are what it was
// loaded from, and `overrides_from` says where those came from. A layer that a recipe has made
// comes from where the model does. Errors: kInvalidArgument if LoadJob() would not accept both.
Result<std::vector<SettingOrigin>> OriginsOf(const Job& job, const WrittenJob& text,
                                             const std::vector<std::string>& overrides,
                                             const std::string& overrides_from);

}  // namespace hdps
