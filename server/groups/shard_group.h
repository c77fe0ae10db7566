// The rows of one shard group at one of the servers that hold them.
#pragma once

#include <memory>
#include <vector>

#include "common/net/node.h"
#include "server/groups/replication.h"
#include "server/row_service.h"

namespace hdps {

struct Job;
struct View;

struct ShardGroupOptions {
  ServerId group;
  PeerId self;
  ServerSabotage sabotage;
  SectionAllocator* sections = nullptr;  // As in ServerNodeOptions.
  ServerMemoryLimit* memory = nullptr;   // As RowService::UseMemory.
};

// At the primary, workers are answered and every change is sent on before it is acknowledged; at a
// backup the same code makes the same changes in the same order, so its rows, its ledgers and its
// clocks are the primary's bit for bit.
//
// Invariant: as of ServerNode. Rows are only touched inside OnFrame, OnView, DropRows and Reset.
class ShardGroup {
 public:
  ShardGroup(const Job& job, Executor& executor, const ShardGroupOptions& options);

  // Requires: this server holds the group in `view`.
  void OnView(const View& view);
  // Of a worker, or of another server that holds the group. Requires: OnView was called.
  void OnFrame(PeerId from, const Frame& frame);
  void OnTick(TimeMs now) { replication_.OnTick(now); }
  // Nothing can be done for a request now: says so, where its kind has an answer that can.
  void Postpone(PeerId from, const Frame& frame) { rows_.Postpone(from, frame); }
  void DropRows();
  void Reset(Clock clock, std::unique_ptr<ShardSet> shards);  // As RowService::Reset.

  std::vector<Outgoing> TakeOutgoing();
  bool leads() const { return replication_.leads(); }
  const ShardSet& shards() const { return rows_.shards(); }
  ShardSet& shards() { return rows_.shards(); }
  // Of the rows; or a change that the primary has made could not be made here.
  Status failure() const { return fault_.ok() ? rows_.failure() : fault_; }
  Clock finished() const { return rows_.finished(); }
  const ServerCounters& counters() const { return rows_.counters(); }
  // Workers whose part of a step others wait for, and the holder that lacks changes.
  std::vector<PeerId> WaitsFor() const;

 private:
  void OnReplicate(PeerId from, const Frame& frame);
  void OnRequest(PeerId from, const Frame& frame);
  void MoveOutgoing();

  const Job& job_;
  const ShardGroupOptions options_;
  RowService rows_;
  Replication replication_;
  size_t changes_max_ = 0;  // That may be on their way to the backups.
  std::vector<Outgoing> outgoing_;
  Status fault_;
};

}  // namespace hdps
