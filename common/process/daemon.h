// What the three daemons have in common: their flags, their start, and their end.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/exit_status.h"
#include "common/base/status.h"
#include "common/process/command_line.h"
#include "common/process/connections.h"
#include "common/process/faults.h"
#include "common/protocol/membership_client.h"

namespace hdps {

// Flags of every daemon: --job --set --log --log_file --pid_file --die_with_parent --keys
// --insecure --faults.
struct DaemonFlags {
  std::string job;
  std::vector<std::string> overrides;
  std::string log, log_file, pid_file;
  Connections connections;
  Faults faults;
};
// `role` is that of the daemon's key. kInvalidArgument when there is no --job, or no such key in
// --keys; kCancelled when a list was asked for and printed.
Result<DaemonFlags> ReadDaemonFlags(KeyRole role);

// Flags of every member, a server or a worker: --scheduler --rank --servers --workers --threads.
struct MemberFlags {
  PeerName name;          // Drawn for this process.
  NodeIdentity identity;  // With that peer id; the address is still to be filled in.
  int threads = 0;
};
// kInvalidArgument names the flag and what would be right.
Result<MemberFlags> ReadMemberFlags(const DaemonFlags& flags);

// The names of the flags above, and of a program's own.
std::vector<std::string_view> DaemonFlagsAnd(std::span<const std::string_view> own);
std::vector<std::string_view> MemberFlagsAnd(std::span<const std::string_view> own);

// From here on a daemon logs, can be told to stop, and its process number stands in --pid_file as
// long as the result lives.
Result<std::unique_ptr<PidFile>> StartDaemon(const std::string& program, const DaemonFlags& flags);

// A daemon from its command line to its exit status. `names`: of its flags.
int RunDaemon(const std::string& program, const std::string& usage,
              std::span<const std::string_view> names, int argc, char** argv,
              const std::function<Result<ProcessEnd>()>& run);

}  // namespace hdps
