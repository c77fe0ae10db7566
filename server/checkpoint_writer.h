// Writes what a save has taken into memory, while requests go on with the rows.
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

namespace hdps {

struct CommandDone;

// What all copies of a server may take together; a save writes at once what is more.
inline constexpr uint64_t kCopiesBytesMax = uint64_t{512} << 20;

// Invariant: one checkpoint at a time is on its way; what came of the last one is known until the
// next, so that it can be told again.
class CheckpointWriter {
 public:
  // `wake` as in BackgroundWork.
  CheckpointWriter(FileSystem& files, Executor& executor, std::function<void()> wake)
      : files_(files), executor_(executor), work_(std::move(wake)) {}

  // Writes what a kSave has taken into its folder, under names of `view`. Requires: not running().
  void Start(const Command& save, ViewId view, std::vector<TakenSnapshot> taken);
  bool running() const { return work_.running(); }
  const std::string& folder() const { return folder_; }  // Of the last one.
  // A kAwaitSaved: its answer comes out of TakeAnswer() when the files are there or have failed. A
  // later one takes the place of one that has not been answered.
  void Await(const Command& command);
  std::optional<CommandDone> TakeAnswer();

 private:
  FileSystem& files_;
  Executor& executor_;
  Clock clock_ = -1;
  std::string folder_;
  std::vector<TakenSnapshot> taken_;  // While running, and only then.
  Result<std::vector<SavedFile>> saved_ = std::vector<SavedFile>();
  std::optional<Command> awaited_;
  BackgroundWork work_;  // Last: ends before what it works on.
};

}  // namespace hdps
