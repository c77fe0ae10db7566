// Whether the first line of a file names columns, and the columns that the job expects.
#pragma once

#include <string>
#include <vector>

#include "common/base/status.h"
#include "common/job/spec/data_spec.h"
#include "worker/data/row.h"

namespace hdps {

struct ColumnSpec;

// Whether so many cells of a first line are names of the job's columns that no row of data would
// have them: more than half, and at least two where there are two. The order does not count, and
// upper and lower case are one.
bool NamesItsColumns(const std::vector<NamedText>& first_line,
                     const std::vector<std::string>& columns);

// Whether rows to predict do without cells of the type.
inline bool MayBeAbsent(ColumnType type) {
  return type == ColumnType::kLabel || type == ColumnType::kWeight || type == ColumnType::kGroup;
}

// The order of the cells of a file without a header: that of the columns which have one, but for
// those of the types of `absent`. Columns that read the cell of another have its place.
CellOrder OrderOf(const std::vector<ColumnSpec>& columns,
                  const std::vector<ColumnType>& absent = {});

// Which cell of a file is which column of a csv job.
struct HeaderMatch {
  CellOrder order;
  bool as_job = false;                   // The header names the job's columns in the job's order.
  std::vector<std::string> passed_over;  // Names that the job does not have.
};

// Finds the job's columns in a header by name: as it is written, or else with upper and lower case
// as one. kInvalidArgument where one is missing (a column of type skip may be, and what MayBeAbsent
// where labels are not read) or stands twice. `place` is "file:line".
Result<HeaderMatch> MatchHeader(const std::string& place, const std::vector<NamedText>& header,
                                const std::vector<ColumnSpec>& columns, bool labels_read);

// Each cell of a first line stands beside the name that the job gives the column at its place; the
// name is empty beyond the job's last column.
//
// Compares a header with the job's columns. kInvalidArgument where a column of the job stands
// elsewhere in the header: the job would train on one column under the name of another. Names that
// the header does not have at all may be the job's own; `warnings` get them, and numbered columns
// that are off by some, as I0 for I1. `place` is "file:line".
Status CompareHeader(const std::string& place, const std::vector<NamedText>& header,
                     std::vector<std::string>* warnings);

}  // namespace hdps
