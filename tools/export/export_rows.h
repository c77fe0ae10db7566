// The rows of a checkpoint by table and ascending key, however many shards and changes they lie in.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "common/base/ids.h"
#include "common/base/status.h"
#include "embedding/table.h"
#include "tools/export/export.h"
#include "tools/export/key_runs.h"
#include "tools/export/wanted_rows.h"

namespace hdps {

// Invariant: memory is that of one shard while shards are read, and kMergeBytes afterwards, beside
// the wanted rows.
class ExportRows {
 public:
  // Reads all shards of the checkpoint one by one and keeps their rows in files in the task's
  // folder, which the destructor removes. `wanted` takes its rows; those of the dense table are
  // kept nowhere else.
  static Result<std::unique_ptr<ExportRows>> Read(const ExportTask& task, WantedRows* wanted);
  ~ExportRows();

  uint64_t num_rows(TableId table) const { return runs_[table.value].num_rows(); }
  // Returns the digest of all rows and their state, as hdps inspect --digest prints it.
  const RowsDigest& digest() const { return digest_; }

  // Visit the rows, or the keys alone, of a table but the dense one: see KeyRuns.
  Status VisitRows(TableId table, const KeyRuns::Visit& visit) const {
    return runs_[table.value].VisitRows(visit);
  }
  Status VisitKeys(TableId table, const KeyRuns::VisitKey& visit) const {
    return runs_[table.value].VisitKeys(visit);
  }

 private:
  ExportRows(FileSystem& files, std::string scratch)
      : files_(files), scratch_(std::move(scratch)) {}
  Status TakeSlice(const TableSlice& slice, uint32_t table, uint32_t first_column,
                   WantedRows* wanted);

  FileSystem& files_;
  const std::string scratch_;
  std::vector<KeyRuns> runs_;  // [tables]; that of the dense table stays empty.
  RowsDigest digest_;
};

}  // namespace hdps
