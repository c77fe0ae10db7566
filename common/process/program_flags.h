// Lists the flags of hdps-scheduler, hdps-server and hdps-worker by name.
#pragma once

#include <string_view>
#include <vector>

#include "common/base/ids.h"

namespace hdps {

// Returns the names of the flags of this role's program. Each program reads its own list, and hdps
// member, which becomes any of them, reads all.
std::vector<std::string_view> FlagsOfProgram(Role role);

}  // namespace hdps
