// Flags that secure a program's connections, --keys and --insecure, and flags that limit them.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/status.h"
#include "common/net/keys/key_folder.h"
#include "common/net/transport.h"

namespace hdps {

// The flags of a daemon for these limits.
inline constexpr std::string_view kLimitFlags[] = {"connections_max", "held_mib_max"};

struct Connections {
  std::shared_ptr<KeyFolder> keys;  // Null without --keys.
  bool insecure = false;
  PeerLimits limits;

  bool may_leave() const { return insecure || keys != nullptr; }
  // Returns options of a transport with these keys that lets each role send the frames it may send.
  TransportOptions Options(const PeerName& self) const;
};

// Returns connections with the keys in the folder `keys`, or without keys if it is empty, under the
// usual limits. Errors: kInvalidArgument if the folder has no usable key of any of `roles`, if
// others can read it, or if `insecure` is set as well.
Result<Connections> ConnectionsWith(const std::string& keys, bool insecure,
                                    std::vector<KeyRole> roles);
// Reads the flags. Errors: also kInvalidArgument if a limit is not valid.
Result<Connections> ReadConnections(std::vector<KeyRole> roles);

// Errors: kInvalidArgument if --scheduler, whose value is `address`, is missing.
Status CheckSchedulerGiven(const std::string& address);

// Warns on the terminal and in the log if `role` listens beyond this machine without keys.
// `address` is what Listen() returned.
void WarnIfUnprotected(const Connections& connections, const std::string& role,
                       const std::string& asked, const std::string& address);

// Is true if callers that are no members may read rows here: with keys, where the transport hears
// readers alone, and where nobody beyond this machine reaches `asked`, the address to listen on.
bool GuestsMayRead(const Connections& connections, const std::string& asked);

// Errors: kInvalidArgument if the job has keys and workers would exchange gradients beyond this
// machine without --insecure_collective, because Gloo and NCCL have no encryption. With that flag
// or --insecure, a warning is printed once instead.
Status CheckCollectiveHost(const Connections& connections, const std::string& host,
                           bool insecure_collective, bool allreduce);

}  // namespace hdps
