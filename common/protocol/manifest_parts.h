// What manifests and messages both tell: files of data, files that were saved, what became of rows.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace hdps {

// The print of a data file when it was opened: its length, and a hash of its first and last bytes.
// It is the same on all machines that have a copy.
inline constexpr size_t kFilePrintsMax = 4096;
struct FilePrint {
  uint64_t bytes = 0, hash = 0;
  friend bool operator==(const FilePrint&, const FilePrint&) = default;
};

struct SavedFile {
  std::string name;  // Inside the checkpoint's folder.
  uint64_t bytes = 0;
  uint64_t checksum = 0;
  uint64_t rows = 0;
  std::string pack = {};  // The file that holds it among others, from `offset` on; empty: its own.
  uint64_t offset = 0;
};

// What became of rows since their server began or loaded them.
struct RowCounts {
  uint64_t admitted = 0;  // Keys that got a row by an update.
  uint64_t refused = 0;   // Gradients of keys without a row, dropped.
  uint64_t evicted = 0;   // Rows gone for good.
  uint64_t fetched = 0;   // Rows that came back from disk.
  uint64_t on_disk = 0;   // Rows that are there alone now.
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
