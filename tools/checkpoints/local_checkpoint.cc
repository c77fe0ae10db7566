// Fetches checkpoints into a temporary folder.
#include "tools/checkpoints/local_checkpoint.h"

#include "common/base/outside_text.h"
#include "common/platform/programs/program.h"
#include "common/process/terminal.h"
#include "common/protocol/checkpoints/rclone.h"

namespace hdps {

Result<LocalCheckpoint> LocalCheckpoint::Open(FileSystem& files, const std::string& path,
                                              const WantedCopies& wanted) {
  LocalCheckpoint local;
  local.path_ = path;
  if (!IsRemote(files, path)) return local;
  HDPS_ASSIGN_OR_RETURN(local.folder_, TemporaryFolder::Make(files, "hdps_fetched"));
  const auto tell = [](const std::string& line) {
    PrintError("%s\n", EscapeUntrusted(line, std::string::npos).c_str());
  };
  HDPS_ASSIGN_OR_RETURN(local.path_, FetchCheckpoint(files, *NewPosixPrograms(), path, wanted,
                                                     local.folder_->path(), tell));
  return local;
}

}  // namespace hdps
