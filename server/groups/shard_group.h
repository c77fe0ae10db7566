// The rows of one shard group at one of the servers that hold them.
#pragma once

#include <memory>
#include <vector>

#include "common/net/node.h"
#include "server/groups/replication.h"
#include "server/record/order_hooks.h"
#include "server/row_service.h"

namespace hdps {

struct Job;
struct View;

struct ShardGroupOptions {
  ServerId group;
  PeerId self;
  ServerSabotage sabotage;
  SectionAllocator* sections = nullptr;  // As in ServerNodeOptions.
  ServerMemoryLimit* memory = nullptr;   // As in RowService::UseMemory.
  bool guests_read = false;              // As in ServerNodeOptions.
  ServerMeters* meters = nullptr;        // Not null; outlives the group.
  OrderHooks order = {};                 // As in ServerNodeOptions.
};

// The primary answers workers, and sends every change to its backups before it acknowledges it. A
// backup makes the same changes in the same order with the same code, so its rows, ledgers and
// clocks equal the primary's bit for bit.
//
// Invariant: as of ServerNode. Rows are only touched inside OnFrame, OnView, DropRows and Reset.
class ShardGroup {
 public:
  ShardGroup(const Job& job, Executor& executor, const ShardGroupOptions& options);

  // Requires: this server holds the group in `view`.
  void OnView(const View& view);
  // Takes a frame of a worker or of another holder of the group. Requires: OnView was called.
  void OnFrame(PeerId from, const Frame& frame);
  void OnTick(TimeMs now);
  // Refuses a request that cannot be served now, if its kind has a reply for that.
  void Postpone(PeerId from, const Frame& frame) { rows_.Postpone(from, frame); }
  void DropRows();
  void Reset(Clock clock, std::unique_ptr<ShardSet> shards);  // As RowService::Reset.

  std::vector<Outgoing> TakeOutgoing();
  bool leads() const { return replication_.leads(); }
  const ShardSet& shards() const { return rows_.shards(); }
  ShardSet& shards() { return rows_.shards(); }
  // Is not ok if the rows failed, or if a change of the primary could not be made here.
  Status failure() const { return fault_.ok() ? rows_.failure() : fault_; }
  Clock finished() const { return rows_.finished(); }
  Clock furthest() const { return rows_.furthest(); }
  const ServerCounters& counters() const { return rows_.counters(); }
  void AddLoads(std::vector<ShardLoad>* loads) const { rows_.AddLoads(loads); }
  // Returns workers whose part of a step others wait for, and the holder that lacks changes.
  std::vector<PeerId> WaitsFor() const;

 private:
  void OnReplicate(PeerId from, const Frame& frame);
  void OnRequest(PeerId from, const Frame& frame);
  // Serves a request whose turn it is, if it has one.
  void Serve(PeerId from, const Frame& frame);
  void MoveOutgoing();

  const Job& job_;
  const ShardGroupOptions options_;
  RowService rows_;
  Replication replication_;
  size_t changes_max_ = 0;  // Limit of changes in flight to the backups.
  std::vector<Outgoing> outgoing_;
  Status fault_;
};

}  // namespace hdps
