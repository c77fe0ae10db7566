// Implements hdps verify: checks that every checkpoint of a run is intact, and tells how fast.
#include <algorithm>
#include <cinttypes>
#include <memory>
#include <string>
#include <vector>

#include "common/base/byte_count.h"
#include "common/base/outside_text.h"
#include "common/job/spec/table_spec.h"
#include "common/platform/file_system.h"
#include "common/platform/monotonic_clock.h"
#include "common/process/command_line.h"
#include "common/process/terminal.h"
#include "scheduler/report/run_summary.h"
#include "tools/checkpoints/local_checkpoint.h"
#include "tools/checkpoints/opened_checkpoint.h"
#include "tools/commands.h"

namespace hdps {
namespace {

// Returns the folders of all checkpoints of a run, complete or not, oldest first; for a single
// checkpoint, its own.
Result<std::vector<std::string>> FoldersOf(FileSystem& files, const std::string& path) {
  if (files.Exists(JoinPath(path, kManifestName))) return std::vector<std::string>{path};
  const std::string inner = JoinPath(path, "checkpoint");
  const std::string& root = files.Exists(inner) ? inner : path;
  HDPS_ASSIGN_OR_RETURN(const std::vector<std::string> names, files.List(root));
  std::vector<std::string> folders;
  for (const std::string& name : names) {
    if (name.starts_with("step_")) folders.push_back(JoinPath(root, name));
  }
  if (folders.empty()) return Status(Code::kNotFound, path + " has no checkpoint");
  return folders;
}

// Bytes of a checkpoint's own files. All were read twice: for the checksums, and row by row.
struct Verified {
  uint64_t bytes = 0, rows = 0;
  bool job_known = true;
  std::string digest;
};

Result<Verified> Verify(FileSystem& files, const std::string& folder) {
  HDPS_ASSIGN_OR_RETURN(const OpenedCheckpoint opened,
                        OpenToInspect(files, folder, WhichCheckpoint::kNewest));
  HDPS_ASSIGN_OR_RETURN(const std::vector<SnapshotSummary::Table> tables,
                        SumOverShards(files, opened));
  Verified verified;
  verified.job_known = opened.job_known;
  for (const CheckpointPart& part : opened.found.chain) {
    for (const SavedFile& file : part.manifest.files) verified.bytes += file.bytes;
  }
  RowsDigest total;
  for (const SnapshotSummary::Table& table : tables) total.Add(table.digest);
  verified.rows = total.rows;
  verified.digest = DigestText(total.sum);
  return verified;
}

Status VerifyAll(const std::vector<std::string>& arguments) {
  if (arguments.empty()) {
    return {Code::kInvalidArgument, "nothing is named: expected hdps verify CHECKPOINT_OR_OUT ..."};
  }
  HDPS_RETURN_IF_ERROR(StartLogging("hdps", "", "warning"));
  const std::unique_ptr<FileSystem> files = NewPosixFileSystem();
  const std::unique_ptr<MonotonicClock> clock = NewSystemClock();
  std::string broken;
  size_t sound = 0, damaged = 0;
  for (const std::string& path : arguments) {
    HDPS_ASSIGN_OR_RETURN(const LocalCheckpoint local,
                          LocalCheckpoint::Open(*files, path, {.kind = WantedCopies::Kind::kAll}));
    HDPS_ASSIGN_OR_RETURN(const std::vector<std::string> folders, FoldersOf(*files, local.path()));
    for (const std::string& folder : folders) {
      const int64_t begin = clock->NowNs();
      const Result<Verified> verified = Verify(*files, folder);
      const double seconds = static_cast<double>(clock->NowNs() - begin) * 1e-9;
      if (!verified.ok()) {
        ++damaged;
        if (broken.empty()) broken = folder;
        PrintOut("damaged  %s: %s\n", folder.c_str(),
                 EscapeUntrusted(verified.status().message()).c_str());
        continue;
      }
      ++sound;
      PrintOut("sound    %s: %" PRIu64 " rows, %s, %.0f MB/s, digest %s%s\n", folder.c_str(),
               verified->rows, ShowByteCount(verified->bytes).c_str(),
               static_cast<double>(verified->bytes) * 1e-6 / std::max(seconds, 1e-9),
               verified->digest.c_str(), verified->job_known ? "" : " (its tables are believed)");
    }
  }
  PrintOut("%zu sound, %zu damaged\n", sound, damaged);
  if (damaged == 0) return {};
  return {Code::kCorruption, std::to_string(damaged) + " of " + std::to_string(sound + damaged) +
                                 " checkpoints are damaged, first " + broken +
                                 "; a run goes on from the newest that is sound"};
}

}  // namespace

Subcommand VerifyCommand() {
  return {"verify",
          "check that every checkpoint of a run is intact",
          "hdps verify CHECKPOINT_OR_OUT ...\n"
          "Reads every file: lengths and checksums, that each row belongs to its shard and\n"
          "table, that weights are finite, and that all of it agrees with the manifest and\n"
          "its job. Ends with status 3 when a checkpoint is damaged.",
          {},
          nullptr,
          VerifyAll};
}

}  // namespace hdps
