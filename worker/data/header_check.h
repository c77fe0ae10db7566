// Compares the first line of a file with the columns that the job expects.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "worker/data/row.h"

namespace hdps {

struct ColumnSpec;
enum class ColumnType : uint8_t;

// Returns true if enough cells of a first line are names of the job's columns that it cannot be a
// row: more than half, and at least two if there are two. Ignores order and case.
bool NamesItsColumns(const std::vector<NamedText>& first_line,
                     const std::vector<std::string>& columns);

// Returns true if rows to predict may lack cells of this type.
bool MayBeAbsent(ColumnType type);

// Returns the cell order of a file without a header: the columns that have a cell, without those of
// the types in `absent`. A column that reads the cell of another column has the position of that
// cell.
CellOrder OrderOf(const std::vector<ColumnSpec>& columns,
                  const std::vector<ColumnType>& absent = {});

// Assigns the cells of a csv file to the job's columns.
struct HeaderMatch {
  CellOrder order;
  bool as_job = false;                   // The header has the job's columns in the job's order.
  std::vector<std::string> passed_over;  // Names in the header that the job does not use.
};

// Finds the job's columns in a header by name: exactly, or else ignoring case. kInvalidArgument if
// a column appears twice or is missing; columns of type skip may be missing, and those that
// MayBeAbsent if labels are not read. `place` is "file:line", and `holder` what has the names
// there.
Result<HeaderMatch> MatchHeader(const std::string& place, const std::vector<NamedText>& header,
                                const std::vector<ColumnSpec>& columns, bool labels_read,
                                const std::string& holder = "the header");

// Compares a header with the job's columns. Each entry of `header` is a cell of the first line with
// the job's name for the column at its position, which is empty after the job's last column.
//
// kInvalidArgument if a column of the job stands elsewhere in the header, because the job would
// train on one column under the name of another. Names that the header lacks may be the job's own,
// and numbers in names may be shifted, as I0 for I1; both go to `warnings`. `place` is "file:line".
Status CompareHeader(const std::string& place, const std::vector<NamedText>& header,
                     std::vector<std::string>* warnings);

}  // namespace hdps
