// The period in which an injected fault is active.
#pragma once

#include <cstdint>
#include <limits>
#include <string>

namespace hdps {

// From `from_ms` on for `for_ms`, counted from the start; or, with `while_file`, as long as that
// file exists, so that a script can switch the fault.
struct FaultWindow {
  int64_t from_ms = 0;
  int64_t for_ms = std::numeric_limits<int64_t>::max();
  std::string while_file;

  bool Holds(int64_t now_ms) const;
};

}  // namespace hdps
