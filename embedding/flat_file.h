// Writes the rows of one shard as a file of FlatRows that can be mapped. docs/formats.md describes
// it.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "common/base/ids.h"
#include "common/base/status.h"
#include "common/platform/file_system.h"
#include "common/platform/seekable_file.h"
#include "common/protocol/manifest_parts.h"
#include "embedding/flat_rows.h"
#include "embedding/snapshot/snapshot.h"
#include "embedding/table.h"

namespace hdps {

struct CheckpointPart;

std::string FlatName(ShardId shard);  // "shard_007.flat"

// Writes a shard as of the newest checkpoint of the chain into `folder`. `slices` tell which tables
// there are. The file is complete if the result is ok; errors are those of ReadShard() and of
// writing. Needs the memory of a block, of the index of the shard's largest table, and of each key
// that a delta of the chain names; rows go through files in the folder, which are gone then.
Result<SavedFile> WriteFlat(FileSystem& files, const std::string& folder,
                            const std::vector<CheckpointPart>& chain, ShardId shard,
                            const std::vector<TableSlice*>& slices);

// The tables of a file, [tables], whose rows lie in its mapping.
struct FlatTables {
  std::shared_ptr<MappedFile> file;
  std::vector<std::unique_ptr<FlatRows>> tables;
};
// Verifies and maps the file `saved` of a folder. `slices` tell which tables there are. kCorruption
// if it is damaged or is not the file that is expected; kInvalidArgument if it is of another job.
// Needs the memory of the index alone.
Result<FlatTables> MapFlat(FileSystem& files, const std::string& folder, const SavedFile& saved,
                           const SnapshotHeader& expected, const std::vector<TableSlice*>& slices);

}  // namespace hdps
