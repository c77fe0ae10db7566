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
  void AppendQuoted(const std::string& cell, std::string* line) const;

  const std::shared_ptr<const ColumnTable> table_;
  const char delimiter_;
  const std::optional<char> quote_;
  std::vector<std::optional<ColumnTexts>> texts_;  // [columns of the table]
};

}  // namespace hdps
