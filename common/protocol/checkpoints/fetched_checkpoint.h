// A checkpoint that rclone has fetched from object storage, for commands that read one.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "common/base/status.h"
#include "common/platform/file_system.h"
#include "common/platform/programs/program.h"
#include "common/protocol/manifest.h"

namespace hdps {

// Says which checkpoints of a folder are fetched: that of WhichCheckpoint, all, or that of a clock.
struct WantedCopies {
  enum class Kind : uint8_t { kBest, kNewest, kAll, kStep };
  Kind kind = Kind::kNewest;
  Clock step = kNoClock;

  static WantedCopies Of(WhichCheckpoint which) {
    return {which == WhichCheckpoint::kBest ? Kind::kBest : Kind::kNewest, kNoClock};
  }
};

// Fetches the checkpoint at `remote`, which is its own folder, a folder of checkpoints, or a folder
// around checkpoint/, into `folder`/checkpoint with all that it builds on. Verifies it, unless
// that is all there is, which the caller verifies. Returns the local path that stands for `remote`:
// `folder`, or the checkpoint's own. Calls `tell` with lines for the operator. Errors:
// kInvalidArgument if rclone, the remote or the checkpoint is not there or there is no room;
// kCorruption names the damaged file there; kIoError if rclone fails.
Result<std::string> FetchCheckpoint(FileSystem& files, Programs& programs,
                                    const std::string& remote, const WantedCopies& wanted,
                                    const std::string& folder,
                                    const std::function<void(const std::string&)>& tell);

}  // namespace hdps
