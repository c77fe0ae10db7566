// Keeps the offsets of groups relative to anchors, and line numbers as their differences from row
// numbers.
#include "worker/data/line_index.h"

#include <glog/logging.h>

#include <algorithm>
#include <limits>

namespace hdps {

bool LineIndex::Add(const Row& row) {
  if (files_.empty() || files_.back().file != row.file) {
    File& next = files_.emplace_back();
    next.file = row.file;
    next.first_row = num_rows_;
  }
  File& file = files_.back();
  const uint64_t of_file = num_rows_ - file.first_row;
  if (of_file % kStride == 0) {
    if (file.groups.size() % kAnchorGroups == 0) file.anchors.push_back(row.begin);
    const uint64_t behind = row.begin - file.anchors.back();
    if (behind > std::numeric_limits<uint32_t>::max()) return false;
    file.groups.push_back(static_cast<uint32_t>(behind));
    // Only a group's first row is looked up; other lines may be many.
    const uint64_t lines = row.number - of_file;
    if (file.shifts.empty() || file.shifts.back().lines != lines) {
      file.shifts.push_back({of_file, lines});
    }
  }
  if (row.end - file.BeginOf(file.groups.size() - 1) > kGroupBytesMax) return false;
  file.end = row.end;
  ++num_rows_;
  return true;
}

LineIndex::RowGroup LineIndex::GroupOf(uint64_t row) const {
  CHECK_LT(row, num_rows_);
  const auto behind = std::ranges::upper_bound(files_, row, {}, &File::first_row);
  const File& file = *(behind - 1);
  const uint64_t index = (row - file.first_row) / kStride;
  RowGroup group;
  group.file = file.file;
  group.begin = file.BeginOf(index);
  group.end = index + 1 < file.groups.size() ? file.BeginOf(index + 1) : file.end;
  group.first_row = file.first_row + index * kStride;
  const uint64_t of_file = index * kStride;
  const auto shift = std::ranges::upper_bound(file.shifts, of_file, {}, &Shift::row);
  group.number = of_file + (shift - 1)->lines;
  return group;
}

}  // namespace hdps
