// Turns a checkpoint into a folder that other programs read: hdps export without its flags.
#pragma once

#include <cstdint>
#include <ostream>
#include <span>
#include <string>
#include <string_view>

#include "common/base/dtype.h"
#include "common/base/status.h"
#include "common/job/job_spec.h"
#include "common/platform/executor.h"
#include "common/platform/file_system.h"
#include "common/protocol/manifest.h"
#include "tools/common_flags.h"
#include "tools/export/export_progress.h"

namespace hdps {

struct ExportRequest {
  // Checkpoint, `which`, job, overrides, data, eval_set and threads as for hdps evaluate; `out` is
  // the folder to make.
  CommonFlags common;
  std::string format;  // The name of an ExportFormat.
  // safetensors
  DType weights = DType::kFp32;              // Of tables; dense tensors stay in 32 bits.
  uint64_t shard_bytes = uint64_t{4} << 30;  // A file that is longer has a single tensor.
  // onnx
  bool tables_inside = true;
  uint64_t max_rows = 1000000;  // Most rows that all tables inside may have together.
  // vectors
  std::string items;      // List of files, for SplitFileList.
  std::string item_text;  // Column whose texts name the items; empty: the first item feature.
  std::string index;      // "exact", "hnsw32", or "" for exact if the build has libfaiss.
};

// An export on its way: the checkpoint has been verified and fits the job.
struct ExportTask {
  const ExportRequest& request;
  FileSystem& files;
  Executor& executor;
  Job job;             // Its tables are cut over the shards as those of the checkpoint are.
  std::string origin;  // Where the job comes from, as messages name it.
  FoundCheckpoint found;
  std::string folder;  // An empty folder, which gets the name `common.out` when all is written.
  std::ostream& to;    // Gets what the command prints.
  ExportProgress& progress;
};

struct ExportFormat {
  std::string_view name;
  // Writes its files into `task.folder`. Null: this build lacks the format.
  Status (*write)(ExportTask& task);
  std::string_view how_to_get;  // Remedy for a build that lacks it.
};

// Exports `request.common.checkpoint`. Errors: kInvalidArgument names the flag that is wrong, and
// an `out` that exists. After an error, or without an end, there is no folder `out`.
Status RunExport(const ExportRequest& request, FileSystem& files, Executor& executor,
                 std::ostream& to);

Status ExportSafetensors(ExportTask& task);
// onnx/ and vectors_export.cc define these, the first in builds that have it.
Status ExportOnnx(ExportTask& task);
Status ExportVectors(ExportTask& task);

// Returns all formats, those included that this build lacks.
std::span<const ExportFormat> ExportFormats();

}  // namespace hdps
