// Flags that more than one subcommand of hdps has.
#pragma once

#include <string>
#include <vector>

#include "common/base/status.h"

namespace hdps {

struct CommonFlags {
  std::string job;
  std::vector<std::string> overrides;
  std::string out;
  std::string checkpoint;
  std::vector<std::string> data;
  std::string log;
  int threads = 0;
};

// As ParseCommandLine left them. kInvalidArgument when one is out of its range.
Result<CommonFlags> ReadCommonFlags();

}  // namespace hdps
