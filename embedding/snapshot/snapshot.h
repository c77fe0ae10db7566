// One shard's rows in one file: written whole, checked whole. The format is in embedding/README.md.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/base/ids.h"
#include "common/base/status.h"
#include "common/platform/file_system.h"
#include "common/protocol/messages.h"
#include "embedding/table.h"

namespace hdps {

struct SnapshotHeader {
  uint64_t tables_digest = 0;  // TablesDigest() of the job that wrote it.
  ShardId shard;
  uint32_t num_shards = 0;
  Clock clock = 0;
};

// "shard_007.snapshot"
std::string SnapshotName(ShardId shard);

// Writes all tables' slices of one shard, streaming. The file is synced and complete when ok.
Result<SavedFile> WriteSnapshot(FileSystem& files, const std::string& folder,
                                const SnapshotHeader& header,
                                const std::vector<const TableSlice*>& tables);

// Reads `saved` back into empty slices. kCorruption names the file and what does not fit (length,
// checksum, header, order of keys, ...); kInvalidArgument when it is the file of another job.
// Checks everything before the first row is stored.
Status ReadSnapshot(FileSystem& files, const std::string& folder, const SavedFile& saved,
                    const SnapshotHeader& expected, const std::vector<TableSlice*>& tables);

// Reads the rows of one snapshot without knowing the job: for `hdps inspect`.
struct SnapshotSummary {
  SnapshotHeader header;
  struct Table {
    std::string name;
    uint32_t dim = 0, state_floats = 0;
    RowsDigest digest;
  };
  std::vector<Table> tables;
};
Result<SnapshotSummary> SummarizeSnapshot(FileSystem& files, const std::string& folder,
                                          const SavedFile& saved);

}  // namespace hdps
