// Reads shard after shard, and leaves the order of the keys to the runs.
#include "tools/export/export_rows.h"

#include <utility>

#include "common/job/spec/table_spec.h"
#include "common/job/table_slices.h"
#include "common/platform/memory_full.h"
#include "tools/scoring/checkpoint_model.h"

namespace hdps {
namespace {

constexpr size_t kBlockRows = 4096;
constexpr char kScratch[] = "rows";  // Folder within the task's.

}  // namespace

Result<std::unique_ptr<ExportRows>> ExportRows::Read(const ExportTask& task, WantedRows* wanted) {
  const MemoryFor reading("one shard of the checkpoint (cluster.shards)");
  std::unique_ptr<ExportRows> rows(new ExportRows(task.files, JoinPath(task.folder, kScratch)));
  HDPS_RETURN_IF_ERROR(task.files.MakeDirectoriesUnsynced(rows->scratch_));
  for (size_t t = 0; t < task.job.tables.size(); ++t) {
    rows->runs_.emplace_back(task.files, JoinPath(rows->scratch_, std::to_string(t)),
                             task.job.tables[t].dim);
  }
  const uint32_t num_shards = task.found.manifest.num_shards;
  uint64_t read_bytes = 0, all_bytes = 0;
  for (const SavedFile& file : task.found.manifest.files) all_bytes += file.bytes;
  for (uint32_t s = 0; s < num_shards; ++s) {
    HDPS_ASSIGN_OR_RETURN(const std::vector<TableSlice> slices,
                          ReadShard(task.files, task.found, task.job, {s}));
    read_bytes += task.found.manifest.files[s].bytes;
    task.progress.Tell("read", read_bytes, all_bytes);
    for (uint32_t t = 0; t < slices.size(); ++t) {
      const uint32_t first_column = FirstColumn(task.job.tables[t], {s}, num_shards);
      HDPS_RETURN_IF_ERROR(rows->TakeSlice(slices[t], t, first_column, wanted));
    }
  }
  for (KeyRuns& runs : rows->runs_) HDPS_RETURN_IF_ERROR(runs.Finish());
  return rows;
}

ExportRows::~ExportRows() {
  // What stays after a failure goes with the task's folder.
  static_cast<void>(files_.RemoveAll(scratch_));
}

Status ExportRows::TakeSlice(const TableSlice& slice, uint32_t table, uint32_t first_column,
                             WantedRows* wanted) {
  const uint32_t dim = slice.dim(), row_floats = dim + slice.state_floats();
  const uint64_t table_hash = TableHash(slice.spec().name);
  const bool dense = slice.spec().dense;
  if (!dense) HDPS_RETURN_IF_ERROR(runs_[table].BeginRun(first_column, dim));
  return slice.VisitRows(kBlockRows, [&](std::span<const Key> keys, std::span<const float> rows) {
    for (size_t k = 0; k < keys.size(); ++k) {
      digest_.AddRow(table_hash, keys[k], rows.subspan(k * row_floats, row_floats));
    }
    wanted->Take({table}, keys, rows, row_floats, first_column, dim);
    return dense ? Status() : runs_[table].Append(keys, rows, row_floats);
  });
}

}  // namespace hdps
