// Reads the bytes of one snapshot file in order, and gives what it holds piece by piece.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "common/base/ids.h"
#include "common/base/status.h"
#include "common/platform/file_system.h"
#include "common/protocol/manifest_parts.h"
#include "embedding/snapshot/snapshot.h"
#include "embedding/snapshot/snapshot_parts.h"

namespace hdps {

// One table of a snapshot file, as the file describes it: a walk visits one after the other.
struct SnapshotTable {
  std::string name;
  uint32_t dim = 0, state_floats = 0;
  uint64_t num_rows = 0;
  PartKind kind = PartKind::kRows;
};

// Callbacks for the contents of a file, in the file's order. An error ends the walk.
struct SnapshotVisitor {
  std::function<Status(const SnapshotHeader&, uint32_t num_tables)> header;
  std::function<Status(uint32_t table, const SnapshotTable&)> table;
  std::function<Status(uint32_t table, std::span<const Key>, std::span<const float> rows)> block;
};

// Walks over one file, from the first byte to the last. Visitors see only bytes whose checksum was
// confirmed. Errors are those of the visitor, kCorruption for what is damaged or is not the file
// that the manifest names, and kInvalidArgument for a version of another program.
Status WalkSnapshot(FileSystem& files, const std::string& folder, const SavedFile& saved,
                    const SnapshotVisitor& visitor);

// Returns what the file says of its tables, by their headers alone where the file can be read at
// any offset. Checks no rows. kCorruption if a header is damaged.
Result<std::vector<SnapshotTable>> TablesOfSnapshot(FileSystem& files, const std::string& folder,
                                                    const SavedFile& saved);

}  // namespace hdps
