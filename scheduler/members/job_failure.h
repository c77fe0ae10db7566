// Why a job ends without having finished, and its exit status.
#pragma once

#include <string>

namespace hdps {

struct JobFailure {
  int exit_status = 3;
  std::string message;
};

}  // namespace hdps
