// Warnings for people at a terminal.
#pragma once

#include <cstdio>
#include <string>
#include <vector>

namespace hdps {

// Each on a line of stderr, "warning: ...": results go elsewhere, so that they can be piped.
inline void PrintWarnings(const std::vector<std::string>& warnings) {
  for (const std::string& warning : warnings) {
    std::fprintf(stderr, "warning: %s\n", warning.c_str());
  }
}

}  // namespace hdps
