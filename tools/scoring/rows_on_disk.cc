// Opens a checkpoint whose rows stay on disk.
#include <memory>
#include <string>
#include <utility>

#include "common/base/byte_count.h"
#include "common/job/job_file.h"
#include "common/telemetry/process_usage.h"
#include "tools/scoring/row_scorer.h"
#include "tools/scoring/scored_job.h"
#include "tools/scoring/serving_folder.h"
#include "worker/data/columnar/table_rows.h"

namespace hdps {
namespace {

// The index of the rows is in memory, and nothing gives it back.
Status CheckLimit(FileSystem& files, const ServingNeed& need, uint64_t memory_limit) {
  const uint64_t resident = ResidentBytes(files);
  if (resident + need.index_bytes <= memory_limit) return {};
  return {Code::kInvalidArgument,
          "the process has " + ShowByteCount(resident) + " without any row, the index of " +
              std::to_string(need.rows) + " rows takes " + ShowByteCount(need.index_bytes) +
              ", and the limit of memory is " + ShowByteCount(memory_limit)};
}

}  // namespace

Result<std::unique_ptr<RowScorer>> RowScorer::OpenOnDisk(FileSystem& files,
                                                         const FoundCheckpoint& found,
                                                         UnknownKeys unknown, uint64_t memory_limit,
                                                         const std::string& scratch,
                                                         Executor& executor) {
  HDPS_ASSIGN_OR_RETURN(Job job, ParseJob(found.manifest.job_json, found.folder, {}));
  HDPS_RETURN_IF_ERROR(FitToCheckpoint(found, &job));
  HDPS_RETURN_IF_ERROR(
      LoadVocabularyOf(JoinPath(found.folder, kManifestName), found, files, &job.data));
  HDPS_ASSIGN_OR_RETURN(const ServingNeed need, LeastServingNeed(files, found, job));
  HDPS_RETURN_IF_ERROR(CheckLimit(files, need, memory_limit));
  HDPS_RETURN_IF_ERROR(files.RemoveAll(scratch));
  HDPS_RETURN_IF_ERROR(files.MakeDirectories(scratch));
  // One shard at a time, because each takes memory while it is written.
  const std::unique_ptr<Executor> alone = NewInlineExecutor();
  const auto open = [&]() -> Result<std::unique_ptr<RowScorer>> {
    HDPS_RETURN_IF_ERROR(WriteServingFolder(files, *alone, found, job, scratch));
    FoundCheckpoint copy{.folder = scratch, .manifest = {}, .refused = {}};
    HDPS_ASSIGN_OR_RETURN(copy.chain, ReadChain(files, scratch));
    copy.manifest = copy.chain.back().manifest;
    return Open(files, copy, unknown, RowForm::kFlat, executor);
  };
  Result<std::unique_ptr<RowScorer>> opened = open();
  HDPS_RETURN_IF_ERROR(files.RemoveAll(scratch));  // What is mapped stays.
  if (!opened.ok()) return opened;
  (*opened)->loaded_->TakeDeltasOn(found.manifest);
  HDPS_RETURN_IF_ERROR(CheckLimit(files, {}, memory_limit));
  (*opened)->loaded_->KeepMemoryBelow(memory_limit, files);
  return opened;
}

}  // namespace hdps
