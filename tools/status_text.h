// Formats the state of a running job as JSON.
#pragma once

#include <string>

namespace hdps {

struct StatusReply;

// Returns job, state, view, step and members, as hdps status --json prints them.
std::string StatusJson(const StatusReply& status);

}  // namespace hdps
