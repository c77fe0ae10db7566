// What a job cannot go on from.
#pragma once

#include <string>

namespace hdps {

struct JobFailure {
  int exit_status = 3;
  std::string message;
};

}  // namespace hdps
