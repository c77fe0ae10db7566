// Finds where the scheduler of a job listens, which may change while the job runs.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "common/base/status.h"
#include "common/platform/file_system.h"

namespace hdps {

// Begins a --scheduler that names a file with the address in place of the address.
inline constexpr std::string_view kFileScheme = "file:";
inline constexpr char kSchedulerHelp[] =
    "Address of the scheduler: tcp://HOST:PORT, ipc://PATH, or file:PATH, a file that holds it, as "
    "hdps-scheduler --address_file writes it";

// Knows the newest address of the scheduler. A member's loop asks it while it waits for the
// scheduler's answer and when it has heard nothing for some heartbeats.
//
// Invariant: a call never waits for another process. Who must ask one keeps a thread for it.
class SchedulerLocator {
 public:
  virtual ~SchedulerLocator() = default;
  // Returns an address that can be parsed. Errors: kUnavailable says why none is known now; one
  // that was known before may still hold.
  virtual Result<std::string> Newest() = 0;
};

std::unique_ptr<SchedulerLocator> NewFixedLocator(std::string address);
// Reads the address from the first line of the file each time.
std::unique_ptr<SchedulerLocator> NewFileLocator(std::unique_ptr<FileSystem> files,
                                                 std::string path);

// Returns the locator for `text`, the value of --scheduler. `may_leave` allows addresses beyond
// this machine. Errors: kInvalidArgument if it is neither an address to dial nor a file's name.
Result<std::unique_ptr<SchedulerLocator>> LocateScheduler(const std::string& text, bool may_leave);

}  // namespace hdps
