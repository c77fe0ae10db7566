// Collects the cells of one record, whose columns come in any order, and writes them as a line.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "worker/data/records/cell_line.h"

namespace hdps {

struct DataSpec;

// Kinds of values that not every column may have.
enum class RecordValue : uint8_t { kFraction, kList, kFractions, kOther };

// The cells of one record, those of RecordColumns().
//
// Invariant: values_ has the bytes of the cells that were added since Clear().
class RowCells {
 public:
  static constexpr size_t kNone = SIZE_MAX;

  RowCells(const DataSpec& data, bool labels_read);

  void Clear();
  // Returns the cell with this name; kNone: no column of the job reads it.
  size_t Find(std::string_view name);
  const std::string& name(size_t cell) const { return cells_[cell].name; }
  // Returns true if every column that reads the cell is of type multi.
  bool multi(size_t cell) const { return cells_[cell].multi; }
  // Returns what the columns want instead of such a value; empty if they take it.
  std::string_view WhyNot(size_t cell, RecordValue value) const {
    return cells_[cell].why_not[static_cast<size_t>(value)];
  }
  // Returns true if a value that does not fit counts as missing, because nothing needs it.
  bool ignored(size_t cell) const { return cells_[cell].ignored; }

  // Returns false if the record has this cell already. Until EndCell() the value is added to
  // values(): nothing if it is missing.
  bool BeginCell(size_t cell);
  CellLineWriter& values() { return values_; }
  void EndCell() { cells_[current_].end = values_.size(); }
  // Drops what was added since BeginCell().
  void DropCell() { cells_[current_].end = cells_[current_].begin; }
  // Appends a cell for each column.
  void WriteTo(CellLineWriter* line) const;

 private:
  struct Cell {
    std::string name;
    std::array<std::string, 4> why_not;  // By RecordValue.
    bool multi = false;
    bool ignored = false;
    bool found = false;         // In the current record.
    size_t begin = 0, end = 0;  // In values_; equal: missing.
  };

  std::vector<Cell> cells_;
  std::map<std::string, size_t, std::less<>> index_;
  size_t next_ =
      0;  // The cell behind the last one that was found: columns tend to keep their order.
  size_t current_ = 0;
  CellLineWriter values_;
};

}  // namespace hdps
