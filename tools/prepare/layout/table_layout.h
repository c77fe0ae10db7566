// Tables of cells: delimiter, quotes, header, comments.
#pragma once

#include <string>
#include <vector>

#include "common/base/status.h"
#include "tools/prepare/data_layout.h"

namespace hdps {

// The cells of a line by these rules.
std::vector<std::string> CellsOf(const std::string& line, char delimiter, const std::string& quote);

// Of the first lines of a file. kInvalidArgument for a file that is no table, and for one whose
// header cannot be read: the message has the place and the mend.
Result<DataLayout> TellTable(const std::string& path, const std::vector<FirstLine>& lines);

}  // namespace hdps
