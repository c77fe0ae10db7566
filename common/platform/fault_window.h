// When a fault on purpose holds.
#pragma once

#include <cstdint>
#include <limits>
#include <string>

namespace hdps {

// From `from_ms` on for `for_ms`, counted from the start; or as long as there is a file of this
// name, so that somebody outside says when.
struct FaultWindow {
  int64_t from_ms = 0;
  int64_t for_ms = std::numeric_limits<int64_t>::max();
  std::string while_file;

  bool Holds(int64_t now_ms) const;
};

}  // namespace hdps
