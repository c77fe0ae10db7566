// The packed rows of a stream, in memory or in a mapped file.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "common/platform/file_system.h"
#include "common/platform/huge_pages.h"
#include "common/platform/seekable_file.h"
#include "worker/data/cache/row_budget.h"

namespace hdps {

// Rows lie in blocks of this size, in any order; none crosses the end of a block. A file is checked
// in pieces of this size.
inline constexpr uint64_t kRowBlockBytes = uint64_t{4} << 20;

// Tells where a row lies, and how much room its text takes in a shuffle window.
class RowEntry {
 public:
  static constexpr uint64_t kOffsetBits = 45;  // 32 TiB.
  RowEntry() = default;
  RowEntry(uint64_t offset, uint32_t window_lines)
      : bits_(offset | uint64_t{window_lines} << kOffsetBits) {}
  uint64_t offset() const { return bits_ & ((uint64_t{1} << kOffsetBits) - 1); }
  uint64_t window_lines() const { return bits_ >> kOffsetBits; }
  bool is_absent() const { return bits_ == UINT64_MAX; }

 private:
  uint64_t bits_ = UINT64_MAX;
};
static_assert(sizeof(RowEntry) == sizeof(uint64_t));

// Invariant: bytes of a file are given only after their piece was found to have its hash.
//
// May be used by several threads.
class CachedRows {
 public:
  using Block = PageBlock;

  // Opens a file as RowWriter writes it. kNotFound if there is none; kCorruption, with the path, if
  // it is cut, damaged or something else.
  static Result<std::shared_ptr<const CachedRows>> Open(FileSystem& files, const std::string& path);
  // Takes rows in memory. `share` counts them.
  CachedRows(std::vector<Block> blocks, uint64_t bytes, std::vector<RowEntry> index,
             std::string stamp, std::unique_ptr<BudgetShare> share);

  uint64_t num_rows() const { return num_rows_; }
  const std::string& stamp() const { return stamp_; }  // As the writer was given it.
  const std::string& path() const { return path_; }    // Empty: the rows are in memory.
  uint64_t bytes() const { return bytes_; }            // Of the rows and their index.

  // Reads the entry of a row. Returns false if it is damaged. Requires: row < num_rows().
  bool EntryOf(uint64_t row, RowEntry* entry) const;
  // Sets `*bytes` to what begins with the row and ends with its block. False: it is damaged.
  bool BytesAt(const RowEntry& entry, std::span<const std::byte>* bytes) const;
  // Hints that the row will be read soon.
  void Prefetch(const RowEntry& entry, size_t bytes) const;

 private:
  CachedRows() = default;
  Status TakeFile();
  bool PieceIsWhole(uint64_t piece) const;
  const std::byte* BlockAt(uint64_t block) const {
    return blocks_.empty() ? mapped_.data() + block * kRowBlockBytes : blocks_[block].get();
  }

  std::string path_, stamp_;
  uint64_t num_rows_ = 0, bytes_ = 0;
  uint64_t row_bytes_ = 0;  // Rows lie in [0, row_bytes_).

  std::vector<Block> blocks_;           // In memory.
  std::vector<RowEntry> own_index_;     // In memory.
  std::unique_ptr<BudgetShare> share_;  // In memory.

  std::unique_ptr<MappedFile> file_;                 // Null: in memory.
  std::span<const std::byte> mapped_;                // The bytes of the file.
  uint64_t content_bytes_ = 0;                       // Of the file, without hashes and footer.
  std::span<const std::byte> in_file_;               // The index in the file.
  mutable std::vector<std::atomic<uint8_t>> whole_;  // [pieces] of the file: 1 if it was checked.
};

}  // namespace hdps
