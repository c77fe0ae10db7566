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

// Applies commands and views to all groups of one server.
//
// Invariant: between two views the groups are the same. Rows made by Load are not visible before
// Reset. Save and Digest cover the groups of which this server is the primary.
class HostedGroups {
 public:
  HostedGroups(const Job& job, Executor& executor, PeerId self, const ServerSabotage& sabotage,
               SectionAllocator* sections, bool guests_read, ServerMeters& meters,
               const OrderHooks& order = {})
      : job_(job),
        executor_(executor),
        self_(self),
        sabotage_(sabotage),
        sections_(sections),
        guests_read_(guests_read),
        meters_(meters),
        order_(order) {}

  // As in RowService.
  void UseMemory(ServerMemoryLimit* memory) { memory_ = memory; }
  // Returns the groups that this server holds in `view`.
  std::vector<ServerId> OwnIn(const View& view) const;
  void OnView(const View& view);
  // Returns the group that `frame` is about; null if its rows are not here.
  ShardGroup* Of(const Frame& frame) const;
  void OnTick(TimeMs now);
  void DropRows();

  // Loads the groups' rows from a checkpoint. The sets are empty if the command has no path or if
  // loading fails.
  using Loaded = std::map<ServerId, std::unique_ptr<ShardSet>>;
  Loaded Load(FileSystem& files, const Command& command, Status* status);
  // Loads the rows of shards that have moved to this server into the present sets; see
  // ShardSet::LoadFrom.
  // `arrived` as there.
  Status TakeShards(FileSystem& files, const Command& load, ArrivedShards& arrived);
  // Returns a shard of which this server is the primary; null if it is none.
  Shard* FindOwn(ShardId id) const;
  // Returns an empty shard that is in no group; null if the job has no such shard, or this server
  // no groups.
  std::unique_ptr<Shard> NewShard(ShardId id) const;
  // Returns the loads of all shards of which this server is the primary.
  std::vector<ShardLoad> Loads() const;
  // Sets every worker's clock to `clock`. A group without an entry in `loaded` keeps its rows.
  // Returns the highest clock before, because the scheduler may not know how many steps are lost.
  Clock Reset(Clock clock, Loaded loaded);
  // Saves the rows. If the command allows it, rows are only copied: the copies are returned, to be
  // written later.
  Result<std::vector<TakenSnapshot>> Save(FileSystem& files, const Command& command,
                                          CommandDone* done);
  // Evicts rows as a kEvict says, also at a backup. kInvalidArgument if no such rows are here.
  Status Evict(const Command& command);
  // Fills the fields of kDigest; the bytes are of all rows that are here, also at a backup.
  Status Digest(const Command& command, CommandDone* done) const;
  // Returns the digest of the group's rows, also at a backup; none if they are not here.
  std::optional<Result<RowsDigest>> DigestOf(ServerId group) const;

  std::vector<Outgoing> TakeOutgoing();
  std::vector<PeerId> WaitsFor() const;  // Over all groups; each member once.
  Status failure() const;
  Clock finished() const;  // Number of steps that every worker has finished, in every group.
  ServerCounters counters() const;
  // Lets the meters have the counts of requests, and of the rows of which this server is primary.
  void CountInMeters() const;

 private:
  std::unique_ptr<ShardSet> EmptyLike(const ShardGroup& group) const;

  const Job& job_;
  Executor& executor_;
  const PeerId self_;
  const ServerSabotage sabotage_;
  SectionAllocator* const sections_;
  const bool guests_read_;  // As in ServerNodeOptions.
  ServerMeters& meters_;
  const OrderHooks order_;
  ServerMemoryLimit* memory_ = nullptr;
  std::map<ServerId, std::unique_ptr<ShardGroup>> groups_;
};

}  // namespace hdps
