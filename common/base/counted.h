// Formats a count and its noun for messages.
#pragma once

#include <cstdint>
#include <string>

namespace hdps {

// Returns "1 server", "2 servers".
inline std::string Counted(uint64_t count, const std::string& thing) {
  return std::to_string(count) + " " + thing + (count == 1 ? "" : "s");
}

}  // namespace hdps
