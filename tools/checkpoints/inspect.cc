// Implements hdps inspect: shows the contents of a checkpoint, or one row of it.
#include <gflags/gflags.h>

#include <cinttypes>
#include <memory>
#include <string>
#include <vector>

#include "common/base/outside_text.h"
#include "common/job/job_file.h"
#include "common/job/spec/checkpoint_spec.h"
#include "common/job/spec/model_spec.h"
#include "common/job/spec/table_spec.h"
#include "common/platform/executor.h"
#include "common/platform/file_system.h"
#include "common/process/command_line.h"
#include "common/process/terminal.h"
#include "embedding/snapshot/snapshot.h"
#include "scheduler/report/run_summary.h"
#include "scheduler/report/setting_changes.h"
#include "tools/checkpoints/inspect_row.h"
#include "tools/checkpoints/local_checkpoint.h"
#include "tools/checkpoints/opened_checkpoint.h"
#include "tools/commands.h"
#include "tools/common_flags.h"
#include "tools/scoring/checkpoint_model.h"
#include "worker/model/model.h"

DEFINE_bool(digest, false, "Print the digest of all rows and nothing else");
DEFINE_string(row, "", "Row to print alone, as TABLE:KEY with the key's number or FEATURE=VALUE");

namespace hdps {
namespace {

// Name that only the dense layers' table has.
constexpr const char* kDenseTableName = "dense";

std::string Joined(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : "; ") + name;
  return text;
}

void PrintClock(const Manifest& manifest) {
  PrintOut("clock       step %" PRId64 ", %" PRIu64 " examples, ", manifest.clock,
           manifest.examples);
  if (manifest.epoch > 0 && manifest.clock == manifest.epoch_start) {
    PrintOut("epoch %u complete\n", manifest.epoch);
  } else {
    PrintOut("in epoch %u, which began at step %" PRId64 "\n", manifest.epoch + 1,
             manifest.epoch_start);
  }
}

// Counts the parameters of the dense layers, each once; returns 0 if the job cannot be read.
uint64_t DenseParameters(const Manifest& manifest) {
  Result<Job> job = ParseJob(manifest.job_json, kManifestName, {});
  if (!job.ok()) return 0;
  job->model.device = "cpu";  // No layer is computed here.
  const std::unique_ptr<Executor> executor = NewTbbExecutor(1);
  const Result<std::unique_ptr<Model>> model = NewModel(*job, *executor);
  uint64_t parameters = 0;
  if (!model.ok()) return 0;
  for (const DenseTensor& tensor : (*model)->tensors()) parameters += tensor.size();
  return parameters;
}

uint64_t FileBytes(const Manifest& manifest) {
  uint64_t bytes = 0;
  for (const SavedFile& file : manifest.files) bytes += file.bytes;
  return bytes;
}

// Prints a delta checkpoint and those it builds on; nothing for a full checkpoint.
void PrintChain(const std::vector<CheckpointPart>& chain) {
  if (chain.size() == 1) return;
  for (const CheckpointPart& part : chain) {
    uint64_t rows = 0;
    for (const SavedFile& file : part.manifest.files) rows += file.rows;
    PrintOut("%-11s step %" PRId64 ": %s %" PRIu64 " rows, %" PRIu64 " bytes\n",
             &part == &chain.front() ? "chain" : "", part.manifest.clock,
             part.manifest.is_delta() ? "changes of" : "all", rows, FileBytes(part.manifest));
  }
}

void PrintContents(const FoundCheckpoint& found, const std::vector<SnapshotSummary::Table>& tables,
                   const RowsDigest& total) {
  const Manifest& manifest = found.manifest;
  const uint64_t file_bytes = FileBytes(manifest);
  PrintOut("checkpoint  %s (every file verified)\n", found.folder.c_str());
  PrintOut("job         %s\n", EscapeUntrusted(manifest.job_name).c_str());
  PrintClock(manifest);
  const WatchState& best = manifest.watched.best;
  if (best.best_clock >= 0) {
    PrintOut("best        step %" PRId64 ": %s %.6f\n", best.best_clock,
             EscapeUntrusted(best.of).c_str(), best.best);
  }
  for (const SettingChange& change : manifest.changes) {
    PrintOut("changed     %s\n", EscapeUntrusted(ChangeText(change)).c_str());
  }
  if (!manifest.arithmetic.empty()) {
    PrintOut("computed    with %s\n", EscapeUntrusted(Joined(manifest.arithmetic)).c_str());
  }
  PrintOut("files       %zu shards, %" PRIu64 " bytes\n", manifest.files.size(), file_bytes);
  PrintChain(found.chain);
  PrintOut("\n%-24s %6s %6s %12s %14s\n", "table", "dim", "state", "rows", "bytes of rows");
  uint64_t dense_rows = 0;
  for (const SnapshotSummary::Table& table : tables) {
    if (table.name == kDenseTableName) dense_rows += table.digest.rows;
    PrintOut("%-24s %6u %6u %12" PRIu64 " %14" PRIu64 "\n", EscapeUntrusted(table.name).c_str(),
             table.dim, table.state_floats, table.digest.rows,
             table.digest.rows * (table.dim + table.state_floats) * sizeof(float));
  }
  PrintOut("\nrows        %" PRIu64 " of embedding tables\n", total.rows - dense_rows);
  if (dense_rows > 0) {
    PrintOut("dense       %" PRIu64 " parameters, kept as the %" PRIu64 " rows of '%s'\n",
             DenseParameters(manifest), dense_rows, kDenseTableName);
  }
  PrintOut("digest      %s\n", DigestText(total.sum).c_str());
  for (const std::string& refused : found.refused) {
    PrintOut("refused     %s\n", EscapeUntrusted(refused).c_str());
  }
}

Status Inspect() {
  HDPS_ASSIGN_OR_RETURN(const CommonFlags flags, ReadCommonFlags());
  if (flags.checkpoint.empty()) {
    return {Code::kInvalidArgument,
            "--checkpoint is missing; give a checkpoint's folder, or the --out of a run"};
  }
  HDPS_RETURN_IF_ERROR(StartLogging("hdps", "", "warning"));
  const std::unique_ptr<FileSystem> files = NewPosixFileSystem();
  HDPS_ASSIGN_OR_RETURN(
      const LocalCheckpoint local,
      LocalCheckpoint::Open(*files, flags.checkpoint, WantedCopies::Of(flags.which)));
  if (!FLAGS_row.empty()) return PrintRow(*files, local.path(), flags.which, FLAGS_row);
  HDPS_ASSIGN_OR_RETURN(const OpenedCheckpoint opened,
                        OpenToInspect(*files, local.path(), flags.which));
  const FoundCheckpoint& found = opened.found;
  HDPS_ASSIGN_OR_RETURN(const std::vector<SnapshotSummary::Table> tables,
                        SumOverShards(*files, opened));
  RowsDigest total;
  for (const SnapshotSummary::Table& table : tables) total.Add(table.digest);
  if (FLAGS_digest) {
    WarnOfPassedOver(found);
    PrintOut("%s\n", DigestText(total.sum).c_str());
  } else {
    PrintContents(found, tables, total);
  }
  return {};
}

}  // namespace

Subcommand InspectCommand() {
  return {"inspect",
          "show what a checkpoint holds: tables, rows, bytes, clock, digest",
          "hdps inspect --checkpoint=DIR [--digest] [--which=newest]\n"
          "hdps inspect --checkpoint=DIR --row=deep:education=Bachelors\n"
          "             prints a row's weights and state, and its shard",
          {"checkpoint", "which", "digest", "row"},
          Inspect};
}

}  // namespace hdps
