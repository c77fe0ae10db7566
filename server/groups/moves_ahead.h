// Sends and takes rows of shards that are to move to another server, while training goes on.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "common/platform/executor.h"
#include "common/platform/file_system.h"
#include "common/protocol/command_messages.h"
#include "embedding/row_copy.h"
#include "server/background_work.h"
#include "server/groups/hosted_groups.h"

namespace hdps {

// Limit of the copy of one shard. A plan with a larger one is given up, so balance leaves a shard
// where it is if it tells more than this; see ShardSet::BytesOfShards().
inline constexpr uint64_t kAheadBytesMax = uint64_t{512} << 20;

// Carries out kSaveAhead and kLoadAhead, shard by shard: the rows of one are copied between two
// requests, and the copy is written, or read, beside the loop.
//
// Invariant: what arrives is no part of the rows that are in use, so a fault here costs nothing but
// the move. One piece of work runs at a time. A command without shards drops what has arrived.
class MovesAhead {
 public:
  MovesAhead(FileSystem& files, Executor& executor, std::function<void()> wake)
      : files_(files), executor_(executor), work_(std::move(wake)) {}

  void Take(const Command& command) { waiting_.push_back(command); }
  // Goes on with what was taken. `groups` is null while others use the rows.
  void Advance(HostedGroups* groups);
  std::optional<CommandDone> TakeAnswer();
  // Takes the shards that have arrived. What is under way is lost; of what waits, a drop of what
  // has come counts as done.
  ArrivedShards TakeArrived();
  // Forgets everything: the move will not be.
  void Drop() { TakeArrived(); }

 private:
  void Begin(HostedGroups& groups);
  // Starts the next piece of work.
  void SaveNext(HostedGroups& groups);
  void LoadNext(HostedGroups& groups);
  void EndPiece();
  void Fail(const Status& why);
  void Finish();

  FileSystem& files_;
  Executor& executor_;
  std::deque<Command> waiting_;
  std::optional<Command> current_;
  size_t next_ = 0;  // Position in the command's shards.
  CommandDone done_;
  std::deque<CommandDone> answers_;
  ArrivedShards arrived_;
  bool dropped_ = false;  // The result of the piece at hand is not wanted any more.
  // The piece at hand: its result, and what it works on.
  Status status_;
  std::vector<SavedFile> written_;
  std::vector<TakenSnapshot> copy_;
  ArrivedShard filled_;
  BackgroundWork work_;  // Last: ends before what it works on.
};

}  // namespace hdps
