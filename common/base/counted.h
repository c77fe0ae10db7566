// Numbers of things in a sentence.
#pragma once

#include <cstdint>
#include <string>

namespace hdps {

// "1 server", "2 servers".
inline std::string Counted(uint64_t count, const std::string& thing) {
  return std::to_string(count) + " " + thing + (count == 1 ? "" : "s");
}

}  // namespace hdps
