// hdps inspect: what a checkpoint holds, and how far two of them are apart.
#include <gflags/gflags.h>

#include <algorithm>
#include <cinttypes>
#include <cmath>
#include <cstdio>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "common/job/job.h"
#include "common/platform/executor.h"
#include "common/platform/file_system.h"
#include "common/process/command_line.h"
#include "common/protocol/manifest.h"
#include "embedding/snapshot/snapshot.h"
#include "embedding/table.h"
#include "scheduler/report/run_report.h"
#include "tools/checkpoint_model.h"
#include "tools/commands.h"
#include "tools/common_flags.h"
#include "worker/model/model.h"

DEFINE_bool(digest, false, "Print the digest of all rows and nothing else");
DEFINE_string(against, "", "Another checkpoint; tells the largest difference of a weight");

namespace hdps {
namespace {

// The name that the dense layers' table has, and no other.
constexpr const char* kDenseTableName = "dense";

std::string Joined(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : "; ") + name;
  return text;
}

void PrintClock(const Manifest& manifest) {
  std::printf("clock       step %" PRId64 ", %" PRIu64 " examples, ", manifest.clock,
              manifest.examples);
  if (manifest.epoch > 0 && manifest.clock == manifest.epoch_start) {
    std::printf("epoch %u complete\n", manifest.epoch);
  } else {
    std::printf("in epoch %u, which began at step %" PRId64 "\n", manifest.epoch + 1,
                manifest.epoch_start);
  }
}

// Parameters of the dense layers, none of them counted twice; 0 when the job is not understood.
uint64_t DenseParameters(const Manifest& manifest) {
  Result<Job> job = ParseJob(manifest.job_json, kManifestName, {});
  if (!job.ok()) return 0;
  job->model.device = "cpu";  // It computes nothing here.
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

// What a delta builds on, and itself; nothing of a full checkpoint.
void PrintChain(const std::vector<CheckpointPart>& chain) {
  if (chain.size() == 1) return;
  for (const CheckpointPart& part : chain) {
    uint64_t rows = 0;
    for (const SavedFile& file : part.manifest.files) rows += file.rows;
    std::printf("%-11s step %" PRId64 ": %s %" PRIu64 " rows, %" PRIu64 " bytes\n",
                &part == &chain.front() ? "chain" : "", part.manifest.clock,
                part.manifest.is_delta() ? "changes of" : "all", rows, FileBytes(part.manifest));
  }
}

void PrintContents(const FoundCheckpoint& found, const std::vector<SnapshotSummary::Table>& tables,
                   const RowsDigest& total) {
  const Manifest& manifest = found.manifest;
  const uint64_t file_bytes = FileBytes(manifest);
  std::printf("checkpoint  %s (every file verified)\n", found.folder.c_str());
  std::printf("job         %s\n", manifest.job_name.c_str());
  PrintClock(manifest);
  const WatchState& best = manifest.watched.best;
  if (best.best_clock >= 0) {
    std::printf("best        step %" PRId64 ": %s %.6f\n", best.best_clock, best.of.c_str(),
                best.best);
  }
  if (!manifest.arithmetic.empty()) {
    std::printf("computed    with %s\n", Joined(manifest.arithmetic).c_str());
  }
  std::printf("files       %zu shards, %" PRIu64 " bytes\n", manifest.files.size(), file_bytes);
  PrintChain(found.chain);
  std::printf("\n%-24s %6s %6s %12s %14s\n", "table", "dim", "state", "rows", "bytes of rows");
  uint64_t dense_rows = 0;
  for (const SnapshotSummary::Table& table : tables) {
    if (table.name == kDenseTableName) dense_rows += table.digest.rows;
    std::printf("%-24s %6u %6u %12" PRIu64 " %14" PRIu64 "\n", table.name.c_str(), table.dim,
                table.state_floats, table.digest.rows,
                table.digest.rows * (table.dim + table.state_floats) * sizeof(float));
  }
  std::printf("\nrows        %" PRIu64 " of embedding tables\n", total.rows - dense_rows);
  if (dense_rows > 0) {
    std::printf("dense       %" PRIu64 " parameters, kept as the %" PRIu64 " rows of '%s'\n",
                DenseParameters(manifest), dense_rows, kDenseTableName);
  }
  std::printf("digest      %s\n", DigestText(total.sum).c_str());
  for (const std::string& refused : found.refused) {
    std::printf("refused     %s\n", refused.c_str());
  }
}

// One checkpoint that can be read shard by shard.
struct OpenedCheckpoint {
  FoundCheckpoint found;
  Job job;
  bool job_known = true;  // Not of one whose layers or optimizers only another program has.
};

Result<OpenedCheckpoint> OpenWithJob(FileSystem& files, const std::string& path,
                                     WhichCheckpoint which) {
  OpenedCheckpoint opened;
  HDPS_ASSIGN_OR_RETURN(opened.found, OpenCheckpoint(files, path, which));
  TellWhich(opened.found);
  const Manifest& manifest = opened.found.manifest;
  const std::string place = JoinPath(opened.found.folder, kManifestName);
  HDPS_ASSIGN_OR_RETURN(opened.job, ParseJob(manifest.job_json, place, {}));
  if (TablesDigest(opened.job) != manifest.tables_digest) {
    return Status(Code::kCorruption, place + ": its job has other tables than the checkpoint");
  }
  return opened;
}

// One shard of a checkpoint, of a full one without keeping its rows.
Result<SnapshotSummary> SummarizeShard(FileSystem& files, const OpenedCheckpoint& from,
                                       const SavedFile& saved, uint32_t shard) {
  const Manifest& manifest = from.found.manifest;
  if (from.found.chain.size() == 1) {
    const SnapshotHeader expected{
        manifest.tables_digest, {shard}, manifest.num_shards, manifest.clock, kNoClock};
    if (!from.job_known) {
      return SummarizeSnapshot(files, from.found.folder, saved, expected, nullptr);
    }
    std::vector<TableSlice> empty = EmptySlices(from.job, manifest, {shard});
    std::vector<TableSlice*> tables;
    for (TableSlice& slice : empty) tables.push_back(&slice);
    return SummarizeSnapshot(files, from.found.folder, saved, expected, &tables);
  }
  HDPS_ASSIGN_OR_RETURN(const std::vector<TableSlice> slices,
                        ReadShard(files, from.found, from.job, {shard}));
  SnapshotSummary summary;
  for (const TableSlice& slice : slices) {
    HDPS_ASSIGN_OR_RETURN(const RowsDigest digest, slice.Digest());
    summary.tables.push_back(
        {slice.spec().name, slice.dim(), slice.state_floats(), digest, /*erased=*/0});
  }
  return summary;
}

// Tables in the order of the job, each the sum over all shards.
Result<std::vector<SnapshotSummary::Table>> SumOverShards(FileSystem& files,
                                                          const OpenedCheckpoint& from) {
  const FoundCheckpoint& found = from.found;
  std::vector<SnapshotSummary::Table> tables;
  for (uint32_t shard = 0; shard < found.manifest.files.size(); ++shard) {
    const SavedFile& saved = found.manifest.files[shard];
    HDPS_ASSIGN_OR_RETURN(const SnapshotSummary summary, SummarizeShard(files, from, saved, shard));
    if (tables.empty()) {
      tables = summary.tables;
      continue;
    }
    if (summary.tables.size() != tables.size()) {
      return Status(Code::kCorruption,
                    found.folder + "/" + saved.name + ": " + std::to_string(summary.tables.size()) +
                        " tables, other shards have " + std::to_string(tables.size()));
    }
    for (size_t t = 0; t < tables.size(); ++t) tables[t].digest.Add(summary.tables[t].digest);
  }
  return tables;
}

// Of the weights, over the keys that either holds; what one does not hold counts as it would be
// made.
Result<float> LargestDifference(TableSlice& a, TableSlice& b) {
  constexpr size_t kBlockRows = 4096;
  float largest = 0;
  for (TableSlice* holder : {&a, &b}) {
    TableSlice& other = holder == &a ? b : a;
    const uint32_t dim = holder->dim(), row_floats = dim + holder->state_floats();
    const auto compare = [&](std::span<const Key> keys, std::span<const float> rows) {
      std::vector<float> others(keys.size() * dim);
      other.Read(keys, dim, others);
      for (size_t k = 0; k < keys.size(); ++k) {
        for (uint32_t i = 0; i < dim; ++i) {
          const float difference = std::fabs(rows[k * row_floats + i] - others[k * dim + i]);
          if (!(difference <= largest)) largest = difference;  // A NaN is the largest of all.
        }
      }
      return Status();
    };
    HDPS_RETURN_IF_ERROR(holder->VisitRows(kBlockRows, compare));
  }
  return largest;
}

Status CheckComparable(const OpenedCheckpoint& a, const OpenedCheckpoint& b) {
  const auto refuse = [&](const std::string& what) {
    return Status(Code::kInvalidArgument, "--against: " + a.found.folder + " and " +
                                              b.found.folder + " cannot be compared: " + what);
  };
  if (a.found.manifest.num_shards != b.found.manifest.num_shards) {
    return refuse("they have " + std::to_string(a.found.manifest.num_shards) + " and " +
                  std::to_string(b.found.manifest.num_shards) + " shards");
  }
  if (a.job.tables.size() != b.job.tables.size()) {
    return refuse("they have " + std::to_string(a.job.tables.size()) + " and " +
                  std::to_string(b.job.tables.size()) + " tables");
  }
  for (size_t t = 0; t < a.job.tables.size(); ++t) {
    const TableSpec &left = a.job.tables[t], &right = b.job.tables[t];
    if (left.name != right.name || left.dim != right.dim || left.shard_by != right.shard_by) {
      return refuse("table '" + left.name + "' of dim " + std::to_string(left.dim) +
                    " stands where the other has '" + right.name + "' of dim " +
                    std::to_string(right.dim));
    }
  }
  return {};
}

Status Compare(FileSystem& files, const std::string& path_a, const std::string& path_b,
               WhichCheckpoint which) {
  HDPS_ASSIGN_OR_RETURN(const OpenedCheckpoint a, OpenWithJob(files, path_a, which));
  HDPS_ASSIGN_OR_RETURN(const OpenedCheckpoint b, OpenWithJob(files, path_b, which));
  HDPS_RETURN_IF_ERROR(CheckComparable(a, b));
  std::vector<float> largest(a.job.tables.size(), 0);
  for (uint32_t shard = 0; shard < a.found.manifest.num_shards; ++shard) {
    HDPS_ASSIGN_OR_RETURN(std::vector<TableSlice> of_a, ReadShard(files, a.found, a.job, {shard}));
    HDPS_ASSIGN_OR_RETURN(std::vector<TableSlice> of_b, ReadShard(files, b.found, b.job, {shard}));
    for (size_t t = 0; t < largest.size(); ++t) {
      HDPS_ASSIGN_OR_RETURN(const float difference, LargestDifference(of_a[t], of_b[t]));
      if (!(difference <= largest[t])) largest[t] = difference;
    }
  }
  float overall = 0;
  for (size_t t = 0; t < largest.size(); ++t) {
    std::printf("table %-24s %.9g\n", a.job.tables[t].name.c_str(),
                static_cast<double>(largest[t]));
    if (!(largest[t] <= overall)) overall = largest[t];
  }
  std::printf("largest difference %.9g\n", static_cast<double>(overall));
  return {};
}

// A full checkpoint tells its tables also without the job.
Result<OpenedCheckpoint> OpenToInspect(FileSystem& files, const std::string& path,
                                       WhichCheckpoint which) {
  Result<OpenedCheckpoint> opened = OpenWithJob(files, path, which);
  if (opened.ok() || opened.status().code() != Code::kInvalidArgument) return opened;
  OpenedCheckpoint unknown;
  HDPS_ASSIGN_OR_RETURN(unknown.found, OpenCheckpoint(files, path, which));
  if (unknown.found.chain.size() > 1) return opened;
  unknown.job_known = false;
  std::fprintf(stderr, "warning: %s; tables are as the files tell\n",
               opened.status().message().c_str());
  return unknown;
}

Status Inspect() {
  HDPS_ASSIGN_OR_RETURN(const CommonFlags flags, ReadCommonFlags());
  if (flags.checkpoint.empty()) {
    return {Code::kInvalidArgument,
            "--checkpoint is missing; give a checkpoint's folder, or the --out of a run"};
  }
  HDPS_RETURN_IF_ERROR(StartLogging("hdps", "", "warning"));
  const std::unique_ptr<FileSystem> files = NewPosixFileSystem();
  if (!FLAGS_against.empty()) {
    return Compare(*files, flags.checkpoint, FLAGS_against, flags.which);
  }
  HDPS_ASSIGN_OR_RETURN(const OpenedCheckpoint opened,
                        OpenToInspect(*files, flags.checkpoint, flags.which));
  const FoundCheckpoint& found = opened.found;
  HDPS_ASSIGN_OR_RETURN(const std::vector<SnapshotSummary::Table> tables,
                        SumOverShards(*files, opened));
  RowsDigest total;
  for (const SnapshotSummary::Table& table : tables) total.Add(table.digest);
  if (FLAGS_digest) {
    std::printf("%s\n", DigestText(total.sum).c_str());
  } else {
    PrintContents(found, tables, total);
  }
  return {};
}

}  // namespace

Subcommand InspectCommand() {
  return {"inspect",
          "what a checkpoint holds: tables, rows, bytes, clock, digest",
          "hdps inspect --checkpoint=DIR [--digest] [--against=DIR] [--which=newest]",
          {"checkpoint", "which", "digest", "against"},
          Inspect};
}

}  // namespace hdps
