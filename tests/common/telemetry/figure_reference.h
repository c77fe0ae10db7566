// Prints the list of figures as it stands in docs/watching.md.
#pragma once

#include <string>

namespace hdps {

// Returns a table of Markdown for each role, a row a figure.
std::string PrintFigureReference();

}  // namespace hdps
