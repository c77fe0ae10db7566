// Records used by both manifests and messages: data files, offsets, saved files, row counts.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace hdps {

// The fingerprint of a data file when it was opened: its length, and a hash of its first and last
// bytes. It is the same for all copies of the file.
inline constexpr size_t kFilePrintsMax = 4096;
struct FilePrint {
  uint64_t bytes = 0, hash = 0;
  friend bool operator==(const FilePrint&, const FilePrint&) = default;
};

// Where a job is in one partition of a Kafka topic: the offset of the first message that no
// finished step has.
struct PartitionOffset {
  uint32_t partition = 0;
  int64_t next = 0;  // Not negative.
  friend bool operator==(const PartitionOffset&, const PartitionOffset&) = default;
};

// The messages of a partition that one step has: those with offsets from `begin` on, before `end`.
struct PartitionSpan {
  uint32_t partition = 0;
  int64_t begin = 0, end = 0;  // Not negative; begin <= end.
  friend bool operator==(const PartitionSpan&, const PartitionSpan&) = default;
};

// Return where the partitions are before a step, and behind it.
inline std::vector<PartitionOffset> BeginsOf(const std::vector<PartitionSpan>& messages) {
  std::vector<PartitionOffset> offsets;
  for (const PartitionSpan& span : messages) offsets.push_back({span.partition, span.begin});
  return offsets;
}
inline std::vector<PartitionOffset> EndsOf(const std::vector<PartitionSpan>& messages) {
  std::vector<PartitionOffset> offsets;
  for (const PartitionSpan& span : messages) offsets.push_back({span.partition, span.end});
  return offsets;
}

struct SavedFile {
  std::string name;  // Inside the checkpoint's folder.
  uint64_t bytes = 0;
  uint64_t checksum = 0;
  uint64_t rows = 0;
  std::string pack = {};  // The file that contains it, from `offset` on; empty if it has its own.
  uint64_t offset = 0;
};

// Counts of rows since their server started or loaded them.
struct RowCounts {
  uint64_t admitted = 0;  // Keys that got a row in an update.
  uint64_t refused = 0;   // Gradients dropped because their key has no row.
  uint64_t evicted = 0;   // Rows removed for good.
  uint64_t fetched = 0;   // Rows read back from disk.
  uint64_t on_disk = 0;   // Rows that are only on disk now.
  void Add(const RowCounts& other) {
    admitted += other.admitted;
    refused += other.refused;
    evicted += other.evicted;
    fetched += other.fetched;
    on_disk += other.on_disk;
  }
  friend bool operator==(const RowCounts&, const RowCounts&) = default;
};

}  // namespace hdps
