// Warnings for people at a terminal.
#pragma once

#include <string>
#include <vector>

#include "common/base/outside_text.h"
#include "common/process/terminal.h"

namespace hdps {

// Each on a line of stderr, "warning: ...": results go elsewhere, so that they can be piped.
inline void PrintWarnings(const std::vector<std::string>& warnings) {
  for (const std::string& warning : warnings) {
    PrintError("warning: %s\n", EscapeUntrusted(warning, std::string::npos).c_str());
  }
}

}  // namespace hdps
