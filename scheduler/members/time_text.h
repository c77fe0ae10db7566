// Formats lengths of time for messages.
#pragma once

#include <string>

#include "common/net/node.h"

namespace hdps {

// "5 s".
inline std::string SecondsOf(TimeMs ms) { return std::to_string(ms / 1000) + " s"; }

// "5.2 s".
inline std::string TenthsOf(TimeMs ms) {
  return std::to_string(ms / 1000) + "." + std::to_string(ms % 1000 / 100) + " s";
}

}  // namespace hdps
