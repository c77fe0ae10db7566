// Recognizes tables of cells: delimiter, quotes, header, comments.
#pragma once

#include <string>
#include <vector>

#include "common/base/status.h"
#include "tools/prepare/data_layout.h"

namespace hdps {

// Splits a line into its cells.
std::vector<std::string> CellsOf(const std::string& line, char delimiter, const std::string& quote);

// Recognizes the layout from the first lines of a file. Returns kInvalidArgument if the file is not
// a table or its header cannot be read, with the place and the remedy.
Result<DataLayout> TellTable(const std::string& path, const std::vector<FirstLine>& lines);

}  // namespace hdps
