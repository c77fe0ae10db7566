// Index of the positions of rows in their files, so that single rows can be read.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace hdps {

// Learns the rows of several files in order, and keeps the position of every kStride-th one.
//
// Invariant: rows are numbered from 0 over all files. A group is up to kStride consecutive rows of
// one file, with the lines between them; it spans at most kGroupBytesMax bytes. Takes an eighth of
// a byte per row, or five eighths if there are other lines between rows everywhere.
class LineIndex {
 public:
  static constexpr uint64_t kStride = 32;
  static constexpr uint64_t kGroupBytesMax = 4 << 20;

  struct Row {
    uint32_t file = 0;
    uint64_t begin = 0, end = 0;  // Offsets in the file; `end` is after the line's own end.
    uint64_t number = 0;          // Line number in its file, from 1.
  };
  // Adds the next row; files ascend. Returns false if rows lie too far apart for an index; it is
  // unusable then.
  bool Add(const Row& row);

  struct RowGroup {
    uint32_t file = 0;
    uint64_t begin = 0, end = 0;  // Offsets in the file.
    uint64_t number = 0;          // Line number of its first line, which is a row.
    uint64_t first_row = 0;
  };
  // Requires: row < num_rows().
  RowGroup GroupOf(uint64_t row) const;
  uint64_t num_rows() const { return num_rows_; }

 private:
  static constexpr uint64_t kAnchorGroups = 128;
  // From this row of the file on, which begins a group, a line's number is the row's plus `lines`.
  struct Shift {
    uint64_t row, lines;
  };
  struct File {
    uint32_t file = 0;
    uint64_t first_row = 0, end = 0;  // `end` is after its last row so far.
    std::vector<uint64_t> anchors;    // Offset of every kAnchorGroups-th group.
    std::vector<uint32_t> groups;     // Offset of each group from its anchor.
    std::vector<Shift> shifts;
    uint64_t BeginOf(uint64_t group) const {
      return anchors[group / kAnchorGroups] + groups[group];
    }
  };

  std::vector<File> files_;  // Only files with rows.
  uint64_t num_rows_ = 0;
};

}  // namespace hdps
