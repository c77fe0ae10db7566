// Lays out rows of cells as a table of text.
#pragma once

#include <string>
#include <vector>

namespace hdps {

// Makes columns as wide as their longest cell. A row of a single cell is a line of its own.
std::string AlignedRows(const std::vector<std::vector<std::string>>& rows);

}  // namespace hdps
