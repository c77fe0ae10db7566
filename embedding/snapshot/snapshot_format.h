// The parts of a snapshot file as they lie on disk; docs/formats.md shows them byte by byte.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace hdps {

inline constexpr uint64_t kSnapshotMagic = 0x504e535350444824;  // "$HDPSSNP" in memory order.
inline constexpr uint64_t kTrailerMagic = 0x444e455350444824;   // "$HDPSEND"
inline constexpr uint32_t kSnapshotVersion = 1;                 // Version of a file with all rows.
inline constexpr uint32_t kDeltaVersion = 2;  // Version of a file with changed rows only.
inline constexpr uint32_t kSnapshotTablesMax = 1u << 16;
inline constexpr uint32_t kSnapshotNameBytesMax = 1u << 12;
inline constexpr uint32_t kSnapshotRowFloatsMax = 1u << 24;
inline constexpr size_t kSnapshotBlockBytes = size_t{1} << 20;

// Opens the file. Each header is followed only by what it names, and ends with the XXH3 of its
// preceding bytes.
struct SnapshotFileHeader {
  uint64_t magic = kSnapshotMagic;
  uint32_t version = kSnapshotVersion;
  uint32_t num_tables = 0;
  uint64_t tables_digest = 0;
  uint32_t shard = 0;
  uint32_t num_shards = 0;
  int64_t clock = 0;
  uint64_t checksum = 0;
};

// Follows the file header of a delta.
struct SnapshotDeltaHeader {
  int64_t base_clock = 0;  // The file holds what changed since the checkpoint of this clock.
  uint64_t checksum = 0;
};

// Opens a table: name_bytes bytes of name follow, then blocks until num_rows rows have come.
struct SnapshotTableHeader {
  uint64_t num_rows = 0;
  uint32_t dim = 0;
  uint32_t state_floats = 0;
  uint32_t name_bytes = 0;
  uint32_t table = 0;  // Position in the file.
  uint64_t name_hash = 0;
  uint64_t checksum = 0;
};

// Opens a block: num_rows keys follow (uint64, ascending over the whole table), then num_rows rows
// [dim + state].
struct SnapshotBlockHeader {
  uint32_t num_rows = 0;
  uint32_t table = 0;
  uint64_t payload_hash = 0;
  uint64_t checksum = 0;
};

// Ends the file.
struct SnapshotTrailer {
  uint64_t magic = kTrailerMagic;
  uint64_t total_rows = 0;
  uint64_t body_bytes = 0;  // Bytes before the trailer.
  uint64_t body_hash = 0;   // XXH3 of those bytes.
  uint64_t checksum = 0;
};

static_assert(sizeof(SnapshotFileHeader) == 48);
static_assert(sizeof(SnapshotDeltaHeader) == 16);
static_assert(sizeof(SnapshotTableHeader) == 40);
static_assert(sizeof(SnapshotBlockHeader) == 24);
static_assert(sizeof(SnapshotTrailer) == 40);
static_assert(std::has_unique_object_representations_v<SnapshotFileHeader>);
static_assert(std::has_unique_object_representations_v<SnapshotDeltaHeader>);
static_assert(std::has_unique_object_representations_v<SnapshotTableHeader>);
static_assert(std::has_unique_object_representations_v<SnapshotBlockHeader>);
static_assert(std::has_unique_object_representations_v<SnapshotTrailer>);

// Returns the number of rows in each block but a table's last: as many as fill kSnapshotBlockBytes,
// at least one.
inline uint32_t SnapshotBlockRows(uint64_t row_floats) {
  const uint64_t row_bytes = sizeof(uint64_t) + row_floats * sizeof(float);
  return static_cast<uint32_t>(kSnapshotBlockBytes / row_bytes) + 1;
}

}  // namespace hdps
