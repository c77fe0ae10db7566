// Rows of one table that come in ascending runs, one a shard, and go in one ascending order.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "common/base/ids.h"
#include "common/base/status.h"
#include "common/platform/file_system.h"

namespace hdps {

// Memory that a merge may take for the parts of the runs that it has read.
inline constexpr uint64_t kMergeBytes = uint64_t{64} << 20;

// Keeps the runs in two files and merges them.
//
// Invariant: within a run keys ascend as unsigned numbers. A run has some columns of its rows, all
// of them unless the table is cut by column; then several runs have parts of one row.
class KeyRuns {
 public:
  // The files are `path`.keys and `path`.weights. `dim` is that of whole rows.
  KeyRuns(FileSystem& files, std::string path, uint32_t dim)
      : files_(files), path_(std::move(path)), dim_(dim) {}

  // Begins a run, whose rows have `dim` columns from `first_column` on.
  Status BeginRun(uint32_t first_column, uint32_t dim);
  // Appends rows to the run, each the first floats of `row_floats`: [keys, row_floats].
  Status Append(std::span<const Key> keys, std::span<const float> rows, uint32_t row_floats);
  // Ends writing. Merging may begin.
  Status Finish();

  uint64_t num_rows() const { return num_rows_; }  // Of distinct keys. Requires: Finish().

  // Calls visit(keys, weights), weights[keys, dim], over all rows in ascending order of keys, some
  // thousand at a time. Columns that no run has are zero.
  using Visit = std::function<Status(std::span<const Key> keys, std::span<const float> weights)>;
  Status VisitRows(const Visit& visit) const;
  // Calls visit(keys) in the same order, and reads no weights.
  using VisitKey = std::function<Status(std::span<const Key> keys)>;
  Status VisitKeys(const VisitKey& visit) const;

 private:
  struct Run {
    uint64_t first_row = 0, first_float = 0;  // In the two files.
    uint64_t rows = 0;
    uint32_t first_column = 0, dim = 0;
  };
  class Cursor;
  Status Merge(bool with_weights, const Visit& visit) const;

  FileSystem& files_;
  const std::string path_;
  const uint32_t dim_;
  std::unique_ptr<WritableFile> keys_, weights_;  // Null before the first run and after the last.
  std::vector<float> packed_;                     // Scratch memory of Append().
  std::vector<Run> runs_;
  uint64_t num_rows_ = 0;
};

}  // namespace hdps
