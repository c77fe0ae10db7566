// Gives commands that read a checkpoint a local folder, also for one in object storage.
#pragma once

#include <memory>
#include <string>

#include "common/base/status.h"
#include "common/platform/file_system.h"
#include "common/platform/folders/temporary_folder.h"
#include "common/protocol/checkpoints/fetched_checkpoint.h"

namespace hdps {

// Invariant: path() can be opened as long as this lives. A folder that was fetched for it is
// removed with it.
class LocalCheckpoint {
 public:
  // Returns `path` itself if it exists here or does not look like rclone's; otherwise what is at
  // `path` is fetched and verified first, which the operator is told. Errors: as FetchCheckpoint().
  // Requires: `files` are those of the operating system, and outlive it.
  static Result<LocalCheckpoint> Open(FileSystem& files, const std::string& path,
                                      const WantedCopies& wanted);

  const std::string& path() const { return path_; }

 private:
  std::string path_;
  std::unique_ptr<TemporaryFolder> folder_;  // Null: nothing was fetched.
};

}  // namespace hdps
