// Stays as the parent of a member: passes signals on, and starts the member again when it dies.
#pragma once

#include <string>
#include <vector>

#include "common/base/exit_status.h"
#include "common/base/ids.h"
#include "common/base/status.h"
#include "common/platform/file_system.h"
#include "common/platform/monotonic_clock.h"

namespace hdps {

struct SupervisedMember {
  Role role = Role::kWorker;
  std::string name;                // For messages: "server_1".
  std::vector<std::string> words;  // Its program and arguments.
  // Arguments that it gets too when it is started again.
  std::vector<std::string> again;
  // The file that holds the scheduler's address until the job ends; empty: nothing tells the end.
  std::string address_file;
};

// Runs the member until it has ended for good, and returns its end, where a death by a signal has
// status 3. Errors: kInvalidArgument if it cannot be started.
Result<ProcessEnd> SuperviseMember(const SupervisedMember& member, FileSystem& files,
                                   MonotonicClock& clock);

}  // namespace hdps
