// Allows one run at a time in one --out, because two would remove each other's checkpoints.
#include "common/process/run_lock.h"

#include <utility>

#include "common/process/command_line.h"

namespace hdps {

Result<std::unique_ptr<FileLock>> LockRunFolder(FileSystem& files, const std::string& program,
                                                const std::string& out) {
  if (const Status made = files.MakeDirectories(out); !made.ok()) {
    return Status(Code::kInvalidArgument,
                  "--out=" + out + " cannot be written to: " + made.message());
  }
  Result<std::unique_ptr<FileLock>> lock =
      files.Lock(JoinPath(out, "lock"), program + " (" + HostAndProcess() + ")");
  if (lock.ok()) return lock;
  const bool held = lock.status().code() == Code::kInvalidArgument;
  return Status(Code::kInvalidArgument,
                "--out=" + out +
                    (held ? " is in use by a run: " + lock.status().message() +
                                "; wait for its end, or give another --out"
                          : " cannot be written to: " + lock.status().message()));
}

}  // namespace hdps
