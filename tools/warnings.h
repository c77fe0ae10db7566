// Prints warnings to a terminal.
#pragma once

#include <string>
#include <vector>

#include "common/base/outside_text.h"
#include "common/process/terminal.h"

namespace hdps {

// Prints each warning on a line of stderr, "warning: ...". Results go to stdout, so they can be
// piped.
inline void PrintWarnings(const std::vector<std::string>& warnings) {
  for (const std::string& warning : warnings) {
    PrintError("warning: %s\n", EscapeUntrusted(warning, std::string::npos).c_str());
  }
}

}  // namespace hdps
