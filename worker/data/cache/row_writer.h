// Keeps packed rows as they come, in memory or in a file.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "common/platform/file_system.h"
#include "worker/data/cache/cached_row.h"
#include "worker/data/cache/cached_rows.h"
#include "worker/data/cache/row_budget.h"
#include "worker/data/cache/row_output.h"

namespace hdps {

struct RowWriterOptions {
  bool in_memory = true;         // Rows are kept in memory as long as they fit.
  std::string path;              // The file for those that do not fit; empty: there is none.
  std::string holder;            // Who writes it, for people.
  Executor* executor = nullptr;  // Writes the file beside the caller; null: the caller does.
};

// Takes each row of a stream once, in any order.
//
// Invariant: after an error nothing more is kept, and nothing is left on disk. Two blocks in memory
// and the index are all that is held of rows that go to a file.
class RowWriter {
 public:
  // `files` must outlive it.
  RowWriter(FileSystem& files, RowWriterOptions options, std::shared_ptr<RowBudget> budget);
  ~RowWriter();

  // Keeps rows; those that are there already are left out.
  void Add(const CachedRun& run);
  // kResourceExhausted if the rows do not fit, kInvalidArgument if another process writes the file,
  // kIoError for a disk that fails.
  const Status& status() const { return status_; }
  // Returns the rows under their stamp. Requires: called once. kInvalidArgument if rows are
  // missing.
  Result<std::shared_ptr<const CachedRows>> Finish(const std::string& stamp);

 private:
  Status AddRow(const CachedRun::Place& place, std::span<const std::byte> bytes);
  Status NewBlock();
  Status EndBlock();
  Status GoToFile();
  // Removes the file unless it is whole.
  void EndFile();
  Status GrowIndex(uint64_t row);

  FileSystem& files_;
  const RowWriterOptions options_;
  std::unique_ptr<BudgetShare> share_;
  Status status_;
  std::vector<CachedRows::Block> blocks_;  // Of rows in a file, the last one alone.
  uint64_t first_block_ = 0;               // Number of blocks_[0].
  uint64_t used_ = kRowBlockBytes;         // Bytes of the last block.
  std::vector<RowEntry> index_;
  uint64_t rows_ = 0;
  std::shared_ptr<RowOutput> file_;  // Null: in memory.
};

}  // namespace hdps
