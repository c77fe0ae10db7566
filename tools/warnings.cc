// Warnings go where the results do not, so that output can be piped.
#include "tools/warnings.h"

#include <cstdio>

namespace hdps {

void PrintWarnings(const Job& job) {
  for (const std::string& warning : job.warnings) {
    std::fprintf(stderr, "warning: %s\n", warning.c_str());
  }
}

}  // namespace hdps
