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
#include "common/protocol/checkpoints/checkpoint_search.h"
#include "common/protocol/checkpoints/fetched_checkpoint.h"
#include "common/protocol/checkpoints/rclone.h"
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

// The folder appears under its name when it is whole, so that a scheduler that comes back finds
// what members may be reading.
Result<std::string> FetchInit(FileSystem& files, Programs& programs, const std::string& path,
                              const std::string& out,
                              const std::function<void(const std::string&)>& tell) {
  constexpr uint64_t kPathBytesMax = 1 << 16;
  const std::string folder = JoinPath(out, kFetchedInitName), source = JoinPath(folder, "source");
  const Result<std::string> before = ReadWholeFile(files, source, kPathBytesMax);
  const std::string last = path.substr(path.find_last_of("/:") + 1);
  const std::string below = ClockOfName(last) ? "checkpoint/" + last : "";
  if (before.ok() && *before == path) return JoinPath(folder, below);
  const std::string part = folder + ".part";
  HDPS_RETURN_IF_ERROR(files.RemoveAll(folder));
  HDPS_RETURN_IF_ERROR(files.RemoveAll(part));
  HDPS_RETURN_IF_ERROR(FetchCheckpoint(files, programs, path, {}, part, tell).status());
  HDPS_RETURN_IF_ERROR(WriteFileAtomically(files, JoinPath(part, "source"), path));
  HDPS_RETURN_IF_ERROR(files.Rename(part, folder));
  return JoinPath(folder, below);
}

std::string RemoveFetchedInit(FileSystem& files, const std::string& out) {
  const std::string folder = JoinPath(out, kFetchedInitName);
  for (const std::string& one : {folder, folder + ".part"}) {
    const Status removed = files.RemoveAll(one);
    if (!removed.ok()) return removed.message();
  }
  return "";
}

std::string WholeInitPath(const std::string& path) {
  if (path.empty() || IsRemote(*NewPosixFileSystem(), path)) return path;
  return std::filesystem::absolute(path).lexically_normal().string();
}

}  // namespace hdps
