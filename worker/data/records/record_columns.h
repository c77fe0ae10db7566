// Tells which columns of a job have a cell in the line of a record.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace hdps {

struct ColumnSpec;
struct DataSpec;

// Returns the columns with a cell of their own that some column reads, in the job's order. One that
// is skipped itself has the type of the first that reads it.
std::vector<ColumnSpec> RecordColumns(const DataSpec& data);
// Returns the place of a cell of this name among `columns`; their number if there is none.
uint32_t CellPlace(const std::vector<ColumnSpec>& columns, const std::string& name);

}  // namespace hdps
