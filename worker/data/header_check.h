// Whether the first line of a file names columns, and the columns that the job expects.
#pragma once

#include <string>
#include <vector>

#include "common/base/status.h"
#include "worker/data/row.h"

namespace hdps {

// Each cell of a first line stands beside the name that the job gives the column at its place; the
// name is empty beyond the job's last column.

// Whether so many cells equal the names beside them that no row of data would: more than half, and
// at least two where there are two. Upper and lower case are one.
bool NamesItsColumns(const std::vector<NamedText>& first_line);

// Compares a header with the job's columns. kInvalidArgument where a column of the job stands
// elsewhere in the header: the job would train on one column under the name of another. Names that
// the header does not have at all may be the job's own; `warnings` get them, and numbered columns
// that are off by some, as I0 for I1. `place` is "file:line".
Status CompareHeader(const std::string& place, const std::vector<NamedText>& header,
                     std::vector<std::string>* warnings);

}  // namespace hdps
