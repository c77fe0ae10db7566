// A job as Python holds it.
#pragma once

#include <string>
#include <vector>

#include "common/base/ids.h"
#include "common/job/given_job.h"
#include "common/job/job_spec.h"

namespace hdps::python {

// Invariant: `job` is what `text` with `overrides` gives, and has passed the checks of a job file.
struct HeldJob {
  WrittenJob text;
  std::vector<std::string> overrides;  // "key.path=value"
  Job job;
};

// Returns the table of rows by key with this name. Raises JobError, which names those that are
// there.
TableId TableNamed(const Job& job, const std::string& name);

}  // namespace hdps::python
