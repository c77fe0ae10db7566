// Which cells the rows of a file to predict lack.
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

// Rows to predict may come without the cells of labels, weights or groups, in all rows of a file or
// in none: the first row of the file tells, by how many cells it has, or by whether it begins with
// an entry in place of a label. A row of another number of cells is a bad row then.
//
// Invariant: what a file lacks is told once. It is an error where the rows that follow at once
// speak against what the first row told, so that a first row that is itself short misleads nobody:
// where it lacks cells one whole row does, else two that lack the same.
class AbsentCells {
 public:
  // Null where rows have no such cells, or headers name them.
  static std::unique_ptr<AbsentCells> Of(const DataSpec& data, std::vector<std::string> paths);

  // Before `parser` takes the line: tells it how the cells of the line's file stand. Files come one
  // behind the other. kInvalidArgument, with the place, where that cannot be told.
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
  // Null: nothing is absent.
  const CellOrder* OrderOf(size_t layout) const {
    return layout == 0 ? nullptr : &layouts_[layout];
  }
  std::string PlaceOf(uint32_t file, uint64_t number) const;

  const std::vector<std::string> paths_;
  const std::vector<std::string> names_;  // Of the columns, to know a header by.
  const bool entries_;                    // Rows are a label and entries.
  std::vector<CellOrder> layouts_;        // That a file may have; the first has all cells.
  Row row_;

  uint32_t file_ = UINT32_MAX;  // Of the last line.
  bool chosen_ = false, settled_ = false;
  size_t layout_ = 0;          // What its first row told, where chosen_.
  uint64_t first_number_ = 0;  // Of that row's line.
  uint32_t doubts_ = 0;        // Rows since then that speak against it.
};

}  // namespace hdps
