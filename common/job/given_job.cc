// Prints the tree of a job file.
#include "common/job/given_job.h"

#include "common/job/text/job_source.h"

namespace hdps {

Result<std::string> GivenJob(FileSystem& files, const std::string& path,
                             const std::vector<std::string>& overrides) {
  constexpr uint64_t kJobBytesMax = 16u << 20;
  HDPS_ASSIGN_OR_RETURN(const std::string text, ReadWholeFile(files, path, kJobBytesMax));
  JobSource source{path, {}};
  HDPS_ASSIGN_OR_RETURN(source.root, ParseJson(text, path));
  for (const std::string& one : overrides) HDPS_RETURN_IF_ERROR(ApplyOverride(one, &source));
  return PrintJson(source.root) + "\n";
}

}  // namespace hdps
