// Finds out which process of this machine listens at a port, for messages to people.
#pragma once

#include <string>

namespace hdps {

// Returns "this process" or "process 812 (nginx)"; empty if no process listens there that this one
// may look at.
std::string HolderOfPort(int port);

}  // namespace hdps
