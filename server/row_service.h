// What workers ask of a server: pull, push, advance, store.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "common/net/node.h"
#include "common/protocol/row_messages.h"
#include "server/key_list_cache.h"
#include "server/push_ledger.h"
#include "server/push_watermark.h"
#include "server/server_node.h"
#include "server/shard_set.h"
#include "server/staleness_gate.h"
#include "server/step/norm_gate.h"
#include "server/step/step_pushes.h"
#include "server/step/sync_combiner.h"
#include "server/vector_clock.h"

namespace hdps {

struct View;

// One server's protocol with the workers of its view, without membership and commands.
//
// Invariant: as of ServerNode. Rows are only touched inside OnRequest, OnView and Reset.
class RowService {
 public:
  // `sections`: as in ServerNodeOptions.
  RowService(const Job& job, Executor& executor, PeerId self, const ServerSabotage& sabotage,
             SectionAllocator* sections);

  // Where rows of the shards made from now on may lie; null: in the machine's memory. Must outlive
  // the service.
  void UseMemory(ServerMemoryLimit* memory) { memory_ = memory; }

  // The workers of the view from now on; `shards` are this server's. Those that it had before keep
  // their rows, others start empty.
  void OnView(const View& view, const std::vector<ShardId>& shards);
  bool Serves(PeerId worker) const { return workers_.contains(worker); }
  // Requires: OnView was called.
  void OnRequest(PeerId from, const Frame& frame);
  // Nothing can be done for a request now: says so, where its kind has an answer that can.
  void Postpone(PeerId from, const Frame& frame);
  // Everyone starts at `clock` with these rows: nothing parked, nothing held. Null: with the rows
  // at hand.
  void Reset(Clock clock, std::unique_ptr<ShardSet> shards);

  // All rows go, before others are loaded.
  void DropRows();

  std::vector<Outgoing> TakeOutgoing() { return std::exchange(outgoing_, {}); }
  // Answers that say that a change is made, which may have to wait until it is made elsewhere too.
  std::vector<Outgoing> TakeAcks() { return std::exchange(acks_, {}); }
  // Whether the request that OnRequest was called with last has changed what this service holds;
  // while changes are recorded, in a form in which another service can be asked for the same.
  std::optional<Frame> TakeChange() { return std::exchange(change_, std::nullopt); }
  void RecordChanges(bool record) { records_changes_ = record; }
  // For tests of their absence: which pushes were taken is not known any more.
  void ForgetPushes() {
    ledgers_.clear();
    store_ledgers_.clear();
  }
  const ShardSet& shards() const { return *shards_; }
  ShardSet& shards() { return *shards_; }
  // Of the rows, if a limit of theirs was hit or their disk has failed: then they may not be what
  // they should be, and nobody may be answered.
  Status failure() const { return shards_ == nullptr ? Status() : shards_->failure(); }
  // The steps that every worker has finished, as far as this server knows.
  Clock finished() const {
    if (norm_.holds()) return norm_.clock();
    return sync_ ? combiner_.next() : clocks_.min();
  }
  const ServerCounters& counters() const { return counters_; }
  // Whose part of the step at hand is not here, where somebody waits for it.
  std::vector<PeerId> WaitsFor() const;

 private:
  struct Asker {  // Where a reply goes.
    PeerId peer;
    uint64_t request_id = 0;
  };
  struct ParkedPull {
    Asker asker;
    WorkerId worker;
    PullRequest request;
    std::shared_ptr<const KeyList> list;
  };

  // Where a request comes from, and the frame that it was decoded from.
  struct Call {
    Asker asker;
    WorkerId worker;
    const Frame& frame;
  };
  void On(const Call& call, PullRequest request);
  void On(const Call& call, PushRequest request);
  void On(const Call& call, const AdvanceRequest& request);
  void On(const Call& call, const StoreRequest& request);
  void On(const Call& call, const SquaresRequest& request);

  // What a request names: the keys it carries, checked and remembered under `number`, or those that
  // were sent under it before.
  struct Naming {
    uint64_t number = 0;
    RowShape shape = RowShape::kWeights;
  };
  Result<std::shared_ptr<const KeyList>> FindKeys(PeerId worker, const Naming& naming,
                                                  const std::vector<TableKeys>& tables,
                                                  const Buffer& keys);
  OwnShards own_shards() const { return {shards_->ids().size(), shards_moved_}; }
  // Whether the push is whole, and the keys of it.
  Status PlanPush(PeerId worker, PlannedPush* push);
  bool Admitted(const ParkedPull& pull) const;
  // Takes a checked push: holds it for its step or applies it. The status is what the ack says.
  Status TakePush(PeerId peer, WorkerId worker, PlannedPush push);
  StepPushes PushesOf(SyncCombiner::Step step) const;
  void ApplyStep(SyncCombiner::Step step, float shrink);  // As in UpdateTerms.
  // Under clip_norm: the squares of a step that has become complete, for whoever waits for them.
  void Measure(SyncCombiner::Step step);
  // Applies the steps that have become complete, then answers the pulls that may read now.
  void Progress();
  // Whether the rows hold the pushes of its own worker that a pull must see.
  bool HoldsOwnPushes(const ParkedPull& pull) const;
  void AnswerPull(const ParkedPull& pull);
  // Answers a request that nobody has decoded, and nobody will.
  void RefuseUnread(PeerId from, const Frame& frame, const Status& why);
  // Answers one that was decoded; `reply`: with what it says beside the reason.
  template <typename Message>
  void Refuse(Asker asker, Message reply, const Status& why);
  void CountRefusal(const Status& why);
  template <typename Message>
  void Reply(Asker asker, const Message& message);
  template <typename Message>
  void Acknowledge(Asker asker, const Message& message);

  const Job& job_;
  Executor& executor_;
  const PeerId self_;
  const ServerSabotage sabotage_;
  SectionAllocator* const sections_;
  const bool sync_;

  ViewId view_;
  std::map<PeerId, WorkerId> workers_;
  ServerMemoryLimit* memory_ = nullptr;
  std::unique_ptr<ShardSet> shards_;
  bool shards_moved_ = false;  // They were others in an earlier view.
  Clock ended_step_ = 0;       // async, ssp: the last step that every worker has finished.
  VectorClock clocks_;
  std::map<PeerId, PushLedger> ledgers_, store_ledgers_;
  std::map<PeerId, KeyListCache> lists_;
  std::map<WorkerId, PushWatermark> progress_;  // Not in sync: there the combiner knows it.
  StalenessGate<ParkedPull> gate_;
  SyncCombiner combiner_;
  const bool clips_norm_;  // Of all gradients of a step, in sync mode.
  NormGate<Asker> norm_;   // Of the same state of the rows as the combiner.
  std::vector<Outgoing> outgoing_, acks_;
  bool records_changes_ = false;
  std::optional<Frame> change_;
  ServerCounters counters_;
};

}  // namespace hdps
