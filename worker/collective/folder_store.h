// Lets processes find each other in a folder that all of them see.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "common/base/status.h"
#include "common/platform/file_system.h"
#include "common/platform/monotonic_clock.h"
#include "common/platform/threads/pause.h"
#include "worker/collective/collective.h"

namespace hdps {

// Invariant: a file is written once, by one process. So a rank that is there twice, and what a run
// has left that was killed, are noticed.
class FolderStore : public RendezvousStore {
 public:
  // Requires: `files` and `clock` outlive it. `timeout_ms` limits each wait.
  FolderStore(FileSystem& files, MonotonicClock& clock, std::string folder, int64_t timeout_ms)
      : files_(files), clock_(clock), folder_(std::move(folder)), timeout_ms_(timeout_ms) {}

  // kInvalidArgument: the key is there already.
  Status Put(const std::string& key, const std::string& value) override;
  // kUnavailable names the key that did not come in time.
  Result<std::string> Get(const std::string& key) override;
  // Removes what this process has put there. To be called when all have read it.
  Status Leave();

 private:
  std::string PathOf(const std::string& key) const;

  FileSystem& files_;
  MonotonicClock& clock_;
  const std::string folder_;
  const int64_t timeout_ms_;
  Pause pause_;
  std::vector<std::string> own_;  // Files of this process.
};

}  // namespace hdps
