// Defines the flags of hdps export.
#include <gflags/gflags.h>

#include <memory>
#include <optional>
#include <string>

#include "common/base/byte_count.h"
#include "common/base/nearest_name.h"
#include "common/platform/executor.h"
#include "common/platform/file_system.h"
#include "common/process/command_line.h"
#include "common/process/terminal.h"
#include "tools/checkpoints/local_checkpoint.h"
#include "tools/commands.h"
#include "tools/common_flags.h"
#include "tools/export/export.h"

DEFINE_string(
    shard_bytes, "4GiB",
    "Length from which tensors go into several files (safetensors; a tensor lies in one), or "
    "beside the model (onnx, and from 2 GiB always)");
DEFINE_string(tables, "inside",
              "onnx: inside, rows are a part of the model; outside, their sums are its inputs");
DEFINE_uint64(max_rows, 1000000, "onnx: most rows of all tables together that go inside");
DEFINE_string(
    items, "",
    "vectors, and top_k of serve: files with the items in the job's data format, FILE,...");
DEFINE_string(item_text, "",
              "vectors, serve: column whose texts name the items; empty: the first item feature");
DEFINE_string(index, "",
              "vectors: index of FAISS that is written too: exact or hnsw32; empty: exact, if this "
              "build has libfaiss");
DECLARE_string(format);
DECLARE_string(weights);

namespace hdps {
namespace {

Result<DType> ReadWeightsFlag() {
  if (FLAGS_weights == "saved" || FLAGS_weights == "f32") return DType::kFp32;
  if (FLAGS_weights == "f16") return DType::kFp16;
  if (FLAGS_weights == "bf16") return DType::kBf16;
  return Status(Code::kInvalidArgument, "--weights=" + FLAGS_weights +
                                            ": expected f32, f16 or bf16" +
                                            DidYouMean(FLAGS_weights, {"f32", "f16", "bf16"}));
}

Status Export() {
  ExportRequest request;
  HDPS_ASSIGN_OR_RETURN(request.common, ReadCommonFlags());
  HDPS_ASSIGN_OR_RETURN(request.weights, ReadWeightsFlag());
  const std::optional<uint64_t> shard_bytes = ParseByteCount(FLAGS_shard_bytes);
  if (!shard_bytes || *shard_bytes == 0) {
    return {Code::kInvalidArgument, "--shard_bytes=" + FLAGS_shard_bytes +
                                        ": expected a number of bytes with a unit, as 512MiB"};
  }
  if (FLAGS_tables != "inside" && FLAGS_tables != "outside") {
    return {Code::kInvalidArgument, "--tables=" + FLAGS_tables + ": expected inside or outside" +
                                        DidYouMean(FLAGS_tables, {"inside", "outside"})};
  }
  request.shard_bytes = *shard_bytes;
  request.format = FLAGS_format;
  std::string& out = request.common.out;
  while (out.size() > 1 && out.back() == '/') out.pop_back();
  request.tables_inside = FLAGS_tables == "inside";
  request.max_rows = FLAGS_max_rows;
  request.items = FLAGS_items;
  request.item_text = FLAGS_item_text;
  request.index = FLAGS_index;
  HDPS_RETURN_IF_ERROR(StartLogging("hdps", "", "warning"));
  const std::unique_ptr<FileSystem> files = NewPosixFileSystem();
  HDPS_ASSIGN_OR_RETURN(const LocalCheckpoint local,
                        LocalCheckpoint::Open(*files, request.common.checkpoint,
                                              WantedCopies::Of(request.common.which)));
  request.common.checkpoint = local.path();
  const std::unique_ptr<Executor> executor = NewTbbExecutor(request.common.threads);
  PrintedStream to;
  return RunExport(request, *files, *executor, to);
}

}  // namespace

Subcommand ExportCommand() {
  return {
      "export",
      "write a checkpoint as a model that other programs run",
      "hdps export --checkpoint=DIR --out=DIR\n"
      "            --format=safetensors|onnx|vectors|serving\n"
      "Takes the best checkpoint of a run and writes a new folder, which is there when\n"
      "all of it is. A key without a row reads as zeros in what is exported.",
      {"checkpoint", "which", "job", "set", "data", "eval_set", "max_bad_rows", "threads", "out",
       "format", "weights", "shard_bytes", "tables", "max_rows", "items", "item_text", "index"},
      Export};
}

}  // namespace hdps
