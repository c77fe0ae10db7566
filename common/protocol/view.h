// Who the members of a job are, and who of them owns which shards.
#pragma once

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

// The membership of one view. Ranks of workers are 0..n-1 and stand in order. Every change of the
// members, and every new process of the scheduler, forms a view with a larger number: requests and
// commands of an older view are refused, so nobody who was replaced, and no scheduler of before, is
// obeyed.
//
// The shards that one server of the first view owned are a group, and ServerId numbers the groups:
// what is asked of a group goes to its primary, whoever that is. With replicas its backups hold the
// same rows, and the first of them is the next primary; so a process may be that of several groups.
struct View {
  static constexpr MessageKind kKind = MessageKind::kView;
  ViewId view;
  std::vector<Member> servers;  // The primary of each group; the rank is the process' own.
  std::vector<Member> workers;
  ShardMap shards;
  // How often the job has gone back to a checkpoint. Where it has grown, nothing that was under way
  // counts any more: members drop it and wait for kLoad.
  uint32_t restarts = 0;
  // The view in which shards last got their places. Behind the first one nobody touches rows before
  // a kLoad has brought those that have come; with `keep` those that stay are kept.
  ViewId placed = {};
  std::vector<GroupBackup> backups;  // By group; those of one in the order of succession.

  // The processes that hold the rows of `group`: the primary, then the backups.
  std::vector<Member> HoldersOf(ServerId group) const;
  // Every process that holds rows, once.
  std::vector<Member> Holders() const;
};

}  // namespace hdps
