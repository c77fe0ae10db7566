// Finds the columns of a job in a table.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/status.h"
#include "worker/data/columnar/cell_reader.h"
#include "worker/data/columnar/columns.h"

namespace hdps {

struct ColumnSpec;

// Returns for each of the job's columns its index in `of`, or CellOrder::kAbsent, by the rule of
// headers (MatchHeader). `name` stands for the table, or the file, in the error, and `holder` for
// what has the names there. Labels, weights and groups may be absent unless `labels_read`.
Result<std::vector<uint32_t>> FindColumns(const std::vector<ColumnTable::Column>& of,
                                          const std::vector<ColumnSpec>& columns,
                                          const std::string& name, bool labels_read,
                                          const std::string& holder = "the table");

// Returns the mend if cells of the type cannot be what the job's column wants; empty if they can.
std::string WhyNotReadable(const ColumnSpec& column, const CellType& type);

// Reads cells of one column of a table as texts, with the values of a list joined by `separator`.
class ColumnTexts {
 public:
  // Requires: the type is not kOther.
  ColumnTexts(const CellType& type, std::string separator);

  // Appends nothing for a missing cell.
  void Append(const ColumnChunk& chunk, int64_t index, std::string* text) const;

 private:
  const CellKind kind_;
  const std::string separator_;
  const CellReader reader_;  // Of the cells, or of those inside of lists.
};

}  // namespace hdps
