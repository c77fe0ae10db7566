// Finds the cells that the rows of a file to predict lack.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "worker/data/line_reader.h"
#include "worker/data/row.h"

namespace hdps {

struct DataSpec;

// Rows to predict may lack the cells of labels, weights or groups: in all rows of a file or in
// none. The first row of the file decides, by its number of cells, or by whether it begins with an
// entry in place of a label. A row with another number of cells is a bad row then.
//
// Invariant: the missing cells of a file are determined once. Because the first row may itself be
// short, it is an error if the rows right after it contradict it: one complete row if the first
// lacks cells, else two rows that lack the same cells.
class AbsentCells {
 public:
  // Returns null if rows have no such cells, or headers name them.
  static std::unique_ptr<AbsentCells> Of(const DataSpec& data, std::vector<std::string> paths);

  // Must be called before `parser` parses the line: sets the cell order of the line's file. Files
  // come one after another. kInvalidArgument, with the place, if the order cannot be determined.
  Status Look(const Line& line, RowParser& parser) {
    const bool told = settled_ && line.place.file == file_;
    return told ? Status() : LookCloser(line, parser);
  }

 private:
  AbsentCells(const DataSpec& data, std::vector<std::string> paths);
  Status LookCloser(const Line& line, RowParser& parser);
  Status Choose(const Line& line, uint32_t cells, RowParser& parser);
  Status Doubt(const Line& line, uint32_t cells);
  uint32_t CellsOf(const std::vector<NamedText>& values) const;
  // Returns null if nothing is absent.
  const CellOrder* OrderOf(size_t layout) const {
    return layout == 0 ? nullptr : &layouts_[layout];
  }
  std::string PlaceOf(uint32_t file, uint64_t number) const;

  const std::vector<std::string> paths_;
  const std::vector<std::string> names_;  // Names of the columns, for recognizing a header.
  const bool entries_;                    // Rows are a label and entries.
  std::vector<CellOrder> layouts_;        // Possible layouts of a file; the first has all cells.
  Row row_;

  uint32_t file_ = UINT32_MAX;  // File of the last line.
  bool chosen_ = false, settled_ = false;
  size_t layout_ = 0;          // Layout of its first row, if chosen_.
  uint64_t first_number_ = 0;  // Number of that row's line.
  uint32_t doubts_ = 0;        // Rows since then that contradict it.
};

}  // namespace hdps
