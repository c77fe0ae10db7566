// A job as Python holds it.
#pragma once

#include <string>
#include <vector>

#include "common/job/job_spec.h"

namespace hdps::python {

// Invariant: `job` is what the other members give, and has passed the checks of a job file.
struct HeldJob {
  std::string path;                    // The job file; empty: `text` is the job.
  std::string text;                    // JSON.
  std::vector<std::string> overrides;  // "key.path=value"
  Job job;
};

}  // namespace hdps::python
