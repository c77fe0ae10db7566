// Writes the FlatRows of one shard as a file that can be mapped. docs/formats.md describes it.
#pragma once

#include <cstdint>
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

std::string FlatName(ShardId shard);  // "shard_007.flat"

// Writes the rows of all tables. Takes the memory of one more table, unless rows are packed. The
// file is complete if the result is ok.
Result<SavedFile> WriteFlat(FileSystem& files, const std::string& folder,
                            const SnapshotHeader& header,
                            const std::vector<const FlatRows*>& tables);

// The tables of a file, [tables], whose rows lie in its mapping.
struct FlatTables {
  std::shared_ptr<MappedFile> file;
  std::vector<std::unique_ptr<FlatRows>> tables;
};
// Verifies and maps the file `saved` of a folder. `slices` tell which tables there are. kCorruption
// if it is damaged or is not the file that is expected; kInvalidArgument if it is of another job.
Result<FlatTables> MapFlat(FileSystem& files, const std::string& folder, const SavedFile& saved,
                           const SnapshotHeader& expected, const std::vector<TableSlice*>& slices);

}  // namespace hdps
