// Where rows lie in their files, so that some of them can be read without the others.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace hdps {

// Learns the rows of several files in their order, and keeps the place of every kStride-th one.
//
// Invariant: rows are numbered from 0 over all files. A group is up to kStride rows of one file
// that follow each other, with what lies between them; it spans at most kGroupBytesMax bytes. Takes
// an eighth of a byte a row, and five eighths where lines lie between rows everywhere.
class LineIndex {
 public:
  static constexpr uint64_t kStride = 32;
  static constexpr uint64_t kGroupBytesMax = 4 << 20;

  struct Row {
    uint32_t file = 0;
    uint64_t begin = 0, end = 0;  // In the file; `end` is behind the line's own end.
    uint64_t number = 0;          // Of the line in its file, from 1.
  };
  // The next row; files ascend. False when the rows lie too far apart: then it is of no use.
  bool Add(const Row& row);

  struct RowGroup {
    uint32_t file = 0;
    uint64_t begin = 0, end = 0;  // In the file.
    uint64_t number = 0;          // Of its first line, which is a row.
    uint64_t first_row = 0;
  };
  // Requires: row < num_rows().
  RowGroup GroupOf(uint64_t row) const;
  uint64_t num_rows() const { return num_rows_; }

 private:
  static constexpr uint64_t kAnchorGroups = 128;
  // From this row of the file on, which begins a group, the line's number is that of the row and
  // this.
  struct Shift {
    uint64_t row, lines;
  };
  struct File {
    uint32_t file = 0;
    uint64_t first_row = 0, end = 0;  // Behind its last row so far.
    std::vector<uint64_t> anchors;    // Where every kAnchorGroups-th group begins.
    std::vector<uint32_t> groups;     // Where each begins behind its anchor.
    std::vector<Shift> shifts;
    uint64_t BeginOf(uint64_t group) const {
      return anchors[group / kAnchorGroups] + groups[group];
    }
  };

  std::vector<File> files_;  // Those that have rows.
  uint64_t num_rows_ = 0;
};

}  // namespace hdps
