// The common part of the three daemons: their flags, start, and end.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "common/base/exit_status.h"
#include "common/base/ids.h"
#include "common/base/status.h"
#include "common/process/command_line.h"
#include "common/process/connections.h"
#include "common/process/faults.h"
#include "common/protocol/membership_client.h"

namespace hdps {

// The flags of every daemon: --job --set --log --log_file --pid_file --die_with_parent --on_term
// --leave_s --keys --insecure --faults.
struct DaemonFlags {
  std::string job;
  std::vector<std::string> overrides;
  std::string log, log_file, pid_file;
  int64_t leave_ms = 0;  // Above 0: a signal to stop makes this process leave, within this time.
  Connections connections;
  Faults faults;
};
// `role` is the role of the daemon's key. Errors: kInvalidArgument if --job is missing or --keys
// has no key of that role; kCancelled if a list was requested and printed.
Result<DaemonFlags> ReadDaemonFlags(KeyRole role);

// The flags of every member, a server or a worker: --scheduler --rank --servers --workers
// --threads.
struct MemberFlags {
  PeerName name;          // Drawn for this process.
  NodeIdentity identity;  // Has that peer id; the address is filled in later.
  int threads = 0;
};
// Errors: kInvalidArgument names the flag and what would be right.
Result<MemberFlags> ReadMemberFlags(const DaemonFlags& flags);

// Starts logging, installs the stop signals, and writes --pid_file, which exists as long as the
// result.
Result<std::unique_ptr<PidFile>> StartDaemon(const std::string& program, const DaemonFlags& flags);

// Runs a role's program from its command line to its exit status.
int RunDaemon(const std::string& program, Role role, const std::string& usage, int argc,
              char** argv, const std::function<Result<ProcessEnd>()>& run);

}  // namespace hdps
