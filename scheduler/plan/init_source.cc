// Finds the checkpoint of --init and compares its job with the new one.
#include "scheduler/plan/init_source.h"

#include <filesystem>
#include <string_view>

#include "common/base/outside_text.h"
#include "common/job/job_file.h"
#include "common/job/job_registry.h"
#include "common/job/job_spec.h"
#include "common/job/optimizers/optimizer_record.h"
#include "common/job/spec/model_spec.h"
#include "common/job/spec/table_spec.h"
#include "common/protocol/manifest.h"

namespace hdps {
namespace {

// Corrects the means of all its rows by one number, that of the step; other rules count updates
// in a row's state, which comes along.
constexpr std::string_view kCountsSteps = "lazy_adam";

Result<InitSource> SourceOf(const Manifest& manifest, const std::string& folder, const Job& job) {
  HDPS_ASSIGN_OR_RETURN(const Job source,
                        ParseJob(manifest.job_json, folder, {}, RegistryOf(job.model)));
  InitSource found{.folder = folder,
                   .job_name = manifest.job_name,
                   .clock = manifest.clock,
                   .match = MatchInit(job, source)};
  for (const InitMatch::Table& table : found.match.tables) {
    const bool counts = OptimizerName(job.tables[table.to.value].optimizer) == kCountsSteps;
    if (table.state && counts) found.steps_before = manifest.clock + manifest.steps_before;
  }
  return found;
}

}  // namespace

Result<InitSource> FindInit(FileSystem& files, const std::string& path, const Job& job) {
  Result<FoundCheckpoint> found = OpenCheckpoint(files, path, WhichCheckpoint::kNewest);
  if (!found.ok()) {
    const Code code =
        found.status().code() == Code::kNotFound ? Code::kInvalidArgument : found.status().code();
    return Status(code, "--init=" + EscapeUntrusted(path) + ": " + found.status().message() +
                            "; expected a checkpoint, or the --out of a run with one");
  }
  // Servers read no other folders, whoever commands it.
  if (std::filesystem::path(found->folder).parent_path().filename() != "checkpoint") {
    return Status(
        Code::kInvalidArgument,
        "--init=" + EscapeUntrusted(path) + ": " + EscapeUntrusted(found->folder) +
            " is no folder NAME/checkpoint/STEP, and servers read checkpoints only there; "
            "put it into a folder of that name");
  }
  return SourceOf(found->manifest, found->folder, job);
}

Result<InitSource> ReadInit(FileSystem& files, const std::string& folder, const Job& job) {
  HDPS_ASSIGN_OR_RETURN(const Manifest manifest, ReadManifest(files, folder));
  return SourceOf(manifest, folder, job);
}

std::string WholeInitPath(const std::string& path) {
  return path.empty() ? path : std::filesystem::absolute(path).lexically_normal().string();
}

}  // namespace hdps
