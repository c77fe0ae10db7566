// The members of a job, and the owner of each shard.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "common/base/ids.h"
#include "common/base/shard_map.h"
#include "common/protocol/message_kind.h"

namespace hdps {

struct Member {
  PeerId peer;
  uint32_t rank = 0;
  std::string address;  // Empty for workers.
};

// A server that holds a copy of a group's rows.
struct GroupBackup {
  ServerId group;
  Member member;
};

// The membership of one view. Ranks of workers are 0..n-1, in order. Every change of the members,
// and every new process of the scheduler, forms a view with a larger number. Requests and commands
// of an older view are refused, so replaced members and earlier schedulers have no effect.
//
// The shards that one server of the first view owned are a group, and ServerId numbers the groups.
// Requests to a group go to its primary, whichever process that is. With replicas, its backups hold
// the same rows, and the first backup is the next primary; so one process may be the primary of
// several groups.
struct View {
  static constexpr MessageKind kKind = MessageKind::kView;
  ViewId view;
  std::vector<Member> servers;  // The primary of each group; `rank` is that of the process.
  std::vector<Member> workers;
  ShardMap shards;
  // Number of times that the job has gone back to a checkpoint. When it has grown, members drop all
  // work in progress and wait for kLoad.
  uint32_t restarts = 0;
  // The view in which shards last moved. Unless that is the first view, servers do not touch rows
  // before a kLoad has brought the shards that they receive; with `keep`, the other rows stay.
  ViewId placed = {};
  std::vector<GroupBackup> backups;  // By group; those of one group in the order of succession.
  // Number of the reign of the scheduler that sends it, see Outbox; 0 unless it was elected.
  uint64_t reign = 0;

  // Returns the processes that hold the rows of `group`: the primary, then the backups.
  std::vector<Member> HoldersOf(ServerId group) const;
  // Returns every process that holds rows, once.
  std::vector<Member> Holders() const;
};

// Returns true if the same processes have the workers' places.
inline bool SameWorkers(const View& a, const View& b) {
  return std::ranges::equal(a.workers, b.workers, {}, &Member::peer, &Member::peer);
}

// Returns true if the ranks of collectives, who met through the scheduler's board in view `left`,
// meet anew in view `next`.
inline bool WorkersMeetAnew(const View& left, const View& next) {
  return left.restarts != next.restarts || !SameWorkers(left, next);
}

}  // namespace hdps
