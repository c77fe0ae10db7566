// Rows in any order on their way into the shards of a checkpoint, on disk in between.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "common/base/ids.h"
#include "common/base/status.h"
#include "common/platform/file_system.h"
#include "embedding/table.h"

namespace hdps {

struct Job;
struct TableSpec;

// Memory of the rows that wait to be written, of all shards together.
inline constexpr uint64_t kWaitingBytes = uint64_t{32} << 20;

// Gathers rows by their shards in one file, and then stores those of a shard into its slices.
//
// Invariant: memory is kWaitingBytes, or one row a shard, and never that of all rows. The rows of a
// shard keep the order in which they came.
class ShardRows {
 public:
  // The destructor removes the file `path`. Requires: `files` and `job` outlive it.
  ShardRows(FileSystem& files, std::string path, const Job& job);
  ~ShardRows();

  // Begins a group of rows of one table, which are counted together, and returns its number.
  Result<size_t> BeginGroup(TableId table);
  // Appends rows [keys, dim of the table] to the group. All are in `shard`, if it is given.
  Status Append(std::span<const Key> keys, std::span<const float> rows,
                std::optional<uint32_t> shard = std::nullopt);
  // Ends gathering. StoreInto() may be called.
  Status Finish();

  // Stores the rows of a shard into its slices, [tables], with the initial state of their
  // optimizers. Of a key that comes again the last row counts.
  Status StoreInto(uint32_t shard, std::vector<TableSlice>* slices);
  // Returns how many rows of a group had a key that the table had already, in the shards so far.
  uint64_t Repeats(size_t group) const;

 private:
  // Rows that lie in the file one behind the other: the keys, then the weights.
  struct Extent {
    size_t group = 0;
    uint64_t begin = 0, rows = 0;
  };
  struct Shard {
    std::vector<Key> keys;  // Rows that wait, of the newest group.
    std::vector<float> weights;
    std::vector<Extent> extents;
  };
  struct Group {
    TableId table;
    uint64_t appended = 0, made = 0;  // Parts of rows, if the table is cut by column.
  };
  Status Write(Shard* shard);
  Status WriteAll();

  FileSystem& files_;
  const std::string path_;
  const Job& job_;
  std::unique_ptr<WritableFile> file_;      // Null before the first row and after Finish().
  std::unique_ptr<SequentialFile> reader_;  // Null before Finish(), and without rows.
  uint64_t bytes_ = 0;                      // Of the file.
  std::vector<Shard> shards_;
  std::vector<Group> groups_;
};

}  // namespace hdps
