// The flags by which a program's connections are protected, or said not to be: --keys, --insecure;
// and those by which whoever connects is held to limits.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/status.h"
#include "common/net/keys/key_folder.h"
#include "common/net/transport.h"

namespace hdps {

// The flags of a daemon's limits.
inline constexpr std::string_view kLimitFlags[] = {"connections_max", "held_mib_max"};

struct Connections {
  std::shared_ptr<KeyFolder> keys;  // Null without --keys.
  bool insecure = false;
  PeerLimits limits;

  bool may_leave() const { return insecure || keys != nullptr; }
  // Of a transport with these keys, which lets each role send what it may.
  TransportOptions Options(const PeerName& self) const;
};

// kInvalidArgument when the folder has no key for the first of `roles` that it knows, when it is
// open to others, when both flags are given, or when a limit is none.
Result<Connections> ReadConnections(std::vector<KeyRole> roles);

// kInvalidArgument when --scheduler, whose value `address` is, is missing.
Status CheckSchedulerGiven(const std::string& address);

// Says on the terminal and in the log what is given up, where `role` listens on `address` beyond
// this machine without keys. `address` as Listen() returned it.
void WarnOfOpenDoor(const Connections& connections, const std::string& role,
                    const std::string& asked, const std::string& address);

// kInvalidArgument where workers would exchange gradients beyond this machine, although the job has
// keys, without --insecure_collective: Gloo and NCCL know none. With it, or with --insecure, that
// is said once.
Status CheckCollectiveHost(const Connections& connections, const std::string& host,
                           bool insecure_collective, bool allreduce);

}  // namespace hdps
