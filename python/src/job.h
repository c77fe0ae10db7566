// A job as Python holds it.
#pragma once

#include <pybind11/pybind11.h>

#include <memory>
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
// Returns the job with the settings of `sets` in place of its own. Raises JobError.
std::shared_ptr<HeldJob> WithSets(const HeldJob& job, const pybind11::dict& sets);
// Adds "key.path=JSON" for each value; dicts inside dicts lengthen the path. Raises JobError for
// keys that are no names and values that JSON lacks.
void AddOverrides(const pybind11::dict& set, const std::string& prefix,
                  std::vector<std::string>* to);

}  // namespace hdps::python
