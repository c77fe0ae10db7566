// Writes what a save has taken, copies or kept rows, while requests go on changing the rows.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "common/platform/executor.h"
#include "common/platform/file_system.h"
#include "common/protocol/command_messages.h"
#include "embedding/snapshot/snapshot.h"
#include "server/background_work.h"
#include "server/watch/server_meters.h"

namespace hdps {

struct CommandDone;

// Limit of a server's copies together; a save writes directly what exceeds it. Under a memory limit
// there is a lower one, CopyBytes(), and what exceeds it is kept on disk.
inline constexpr uint64_t kCopiesBytesMax = uint64_t{512} << 20;

// Writes one checkpoint's rows to disk.
//
// Invariant: at most one checkpoint is being written. The result of the last one is kept until the
// next begins, so that it can be reported again.
class CheckpointWriter {
 public:
  // `wake` as in BackgroundWork. `meters` must outlive the writer.
  CheckpointWriter(FileSystem& files, Executor& executor, std::function<void()> wake,
                   ServerMeters& meters)
      : files_(files), executor_(executor), meters_(meters), work_(std::move(wake)) {}

  // Writes the copies of a kSave, which began at `begun_ns`, into its folder, under names of
  // `view`. Requires: not running().
  void Start(const Command& save, ViewId view, std::vector<TakenSnapshot> taken, int64_t begun_ns);
  bool running() const { return work_.running(); }
  const std::string& folder() const { return folder_; }  // Folder of the last save.
  // Takes a kAwaitSaved. TakeAnswer() returns its answer once the files are written or have failed.
  // A later command replaces an unanswered one.
  void Await(const Command& command);
  std::optional<CommandDone> TakeAnswer();

 private:
  FileSystem& files_;
  Executor& executor_;
  ServerMeters& meters_;
  Clock clock_ = -1;
  std::string folder_;
  std::vector<TakenSnapshot> taken_;  // Empty unless running.
  Result<std::vector<SavedFile>> saved_ = std::vector<SavedFile>();
  std::optional<Command> awaited_;
  BackgroundWork work_;  // Last: ends before what it works on.
};

}  // namespace hdps
