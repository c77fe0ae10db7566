// How a program reaches the etcd in which the schedulers of a job are elected.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "common/base/status.h"
#include "common/election/etcd.h"
#include "common/platform/file_system.h"
#include "common/process/connections.h"
#include "common/protocol/locate/scheduler_locator.h"

namespace hdps {

// Returns a client for `text`, the value of `flag`, with the login in --elect_file; each request to
// an endpoint lasts at most `limit_ms`. It has asked nothing yet. Errors: kInvalidArgument names
// the flag, what is wrong and what would be right, also if the password would leave this machine in
// plain text.
Result<std::unique_ptr<Etcd>> OpenEtcd(FileSystem& files, const std::string& flag,
                                       const std::string& text, const Connections& connections,
                                       int64_t limit_ms);

// Returns the locator for `text`, the value of --scheduler: an address, a file, or an etcd. Errors:
// kInvalidArgument, as OpenEtcd() and LocateScheduler().
Result<std::unique_ptr<SchedulerLocator>> FindScheduler(const std::string& text,
                                                        const Connections& connections);
// Returns whether `text` names a place where the address stands, and not the address.
inline bool IsLookedUp(const std::string& text) {
  return text.starts_with(kFileScheme) || text.starts_with(kEtcdScheme);
}
// Finds the address once, and waits for an etcd. Errors: also kUnavailable if none is known now.
Result<std::string> AskForScheduler(const std::string& text, const Connections& connections);

}  // namespace hdps
