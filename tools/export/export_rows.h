// The rows of a checkpoint by table and ascending key, however many shards and changes they lie in.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "common/base/ids.h"
#include "common/base/status.h"
#include "tools/export/export.h"
#include "tools/export/key_runs.h"
#include "tools/export/wanted_rows.h"

namespace hdps {

// Invariant: memory is that of one shard while shards are read, and at most kMergeBytes afterwards.
class ExportRows {
 public:
  // Reads all shards of the checkpoint, one by one, and keeps their rows in files of the folder
  // `scratch`, which Close() removes. Rows of wanted keys, and those of dense tensors, stay in
  // memory too.
  static Result<std::unique_ptr<ExportRows>> Read(const ExportTask& task,
                                                  const std::string& scratch,
                                                  WantedRows* wanted);

  uint64_t num_rows(TableId table) const { return runs_[table.value].num_rows(); }
  // Returns the checkpoint's dense weights in the layout of the model's flat array; empty without
  // dense layers.
  std::span<const float> dense() const { return dense_; }

  // Calls visit(keys, weights), weights[keys, dim], over all rows of a table in ascending order of
  // keys as unsigned numbers, some thousand at a time. Columns of a row that no shard has are zero.
  using Visit = std::function<Status(std::span<const Key> keys, std::span<const float> weights)>;
  Status VisitRows(TableId table, const Visit& visit) const;
  // Calls visit(keys) in the same order, and reads no weights.
  Status VisitKeys(TableId table, const std::function<Status(std::span<const Key>)>& visit) const;

 private:
  ExportRows() = default;

  std::vector<KeyRuns> runs_;  // [tables]
  std::vector<float> dense_;
};

}  // namespace hdps
