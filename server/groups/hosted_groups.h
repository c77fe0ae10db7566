// The shard groups whose rows one server holds, as primary or as backup.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "common/net/node.h"
#include "common/platform/executor.h"
#include "common/platform/file_system.h"
#include "server/groups/shard_group.h"
#include "server/server_node.h"

namespace hdps {

struct Command;
struct CommandDone;
struct Job;
struct View;

// Invariant: between two views the groups are the same. Load makes rows that nobody sees before
// Reset; Save and Digest are of the groups that this server is the primary of.
class HostedGroups {
 public:
  HostedGroups(const Job& job, Executor& executor, PeerId self, const ServerSabotage& sabotage,
               SectionAllocator* sections)
      : job_(job), executor_(executor), self_(self), sabotage_(sabotage), sections_(sections) {}

  // As in RowService.
  void UseMemory(ServerMemoryLimit* memory) { memory_ = memory; }
  // Those that this server holds in `view`.
  std::vector<ServerId> OwnIn(const View& view) const;
  void OnView(const View& view);
  // Null where the rows that `frame` is about are not here.
  ShardGroup* Of(const Frame& frame) const;
  void OnTick(TimeMs now);
  void DropRows();

  // The groups' rows as a checkpoint has them; empty ones where `path` is, or where it fails.
  using Loaded = std::map<ServerId, std::unique_ptr<ShardSet>>;
  Loaded Load(FileSystem& files, const Command& command, Status* status);
  // Loads shards that have come to this server into the rows at hand; see ShardSet::LoadFrom.
  Status TakeShards(FileSystem& files, const Command& load);
  // Everyone starts at `clock`; groups of which nothing is `loaded`, with the rows at hand.
  void Reset(Clock clock, Loaded loaded);
  // What is left to be written, where the command allows that.
  Result<std::vector<TakenSnapshot>> Save(FileSystem& files, const Command& command,
                                          CommandDone* done);
  // Into the fields of kDigest; bytes are of all rows that are here.
  Status Digest(CommandDone* done) const;
  // Of rows that are here, also at a backup.
  std::optional<Result<RowsDigest>> DigestOf(ServerId group) const;

  std::vector<Outgoing> TakeOutgoing();
  std::vector<PeerId> WaitsFor() const;  // Of all groups, each member once.
  Status failure() const;
  Clock finished() const;  // The steps that every worker has finished, in every group.
  ServerCounters counters() const;

 private:
  std::unique_ptr<ShardSet> EmptyLike(const ShardGroup& group) const;

  const Job& job_;
  Executor& executor_;
  const PeerId self_;
  const ServerSabotage sabotage_;
  SectionAllocator* const sections_;
  ServerMemoryLimit* memory_ = nullptr;
  std::map<ServerId, std::unique_ptr<ShardGroup>> groups_;
};

}  // namespace hdps
