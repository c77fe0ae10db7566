// Prints the tree of a job's text.
#include "common/job/given_job.h"

#include "common/job/text/job_source.h"

namespace hdps {

Result<std::string> GivenJob(const WrittenJob& text, const std::vector<std::string>& overrides) {
  JobSource source{text.origin, {}};
  HDPS_ASSIGN_OR_RETURN(source.root, ParseJson(text.text, text.origin));
  for (const std::string& one : overrides) HDPS_RETURN_IF_ERROR(ApplyOverride(one, &source));
  return PrintJson(source.root) + "\n";
}

}  // namespace hdps
