// Writes rows of a table as lines of a CSV file.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "worker/data/columnar/column_sources.h"
#include "worker/data/columnar/columns.h"

namespace hdps {

struct DataSpec;

// Puts cells into lines of a CSV file.
class CellQuotes {
 public:
  explicit CellQuotes(const DataSpec& data);

  char delimiter() const { return delimiter_; }
  // Appends a cell: in quotes, if the job has them, where it contains the delimiter, a quote or the
  // end of a line.
  void Append(const std::string& cell, std::string* line) const;
  // Returns true if a reader finds the cell again in a line with it: the end of a line never is in
  // a cell, and without quotes no delimiter is.
  bool MayHold(const std::string& cell) const;

 private:
  const char delimiter_;
  const std::optional<char> quote_;
};

// Writes all columns of the table in its order, by the job's delimiter, quote and separators: the
// text of each value (CellReader), in quotes if it contains the delimiter, a quote or the end of a
// line. A missing cell is empty, and so is one that hdps cannot read.
//
// data.validation_share hashes these lines, so that it holds out the rows that it holds out of such
// a file.
class TableLines {
 public:
  // `cell_of_column` as from FindColumns.
  TableLines(const DataSpec& data, std::shared_ptr<const ColumnTable> table,
             const std::vector<uint32_t>& cell_of_column);

  // Returns the line of a row, without its end. Requires: row < num_rows().
  std::string LineOf(uint64_t row) const;

 private:
  const std::shared_ptr<const ColumnTable> table_;
  const CellQuotes quotes_;
  std::vector<std::optional<ColumnTexts>> texts_;  // [columns of the table]
};

}  // namespace hdps
