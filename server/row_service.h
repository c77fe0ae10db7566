// Serves the requests of workers: pull, push, advance, store, squares.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "common/net/node.h"
#include "common/protocol/row_messages.h"
#include "server/key_list_cache.h"
#include "server/places/kept_pulls.h"
#include "server/places/rank_stands.h"
#include "server/push_ledger.h"
#include "server/push_watermark.h"
#include "server/record/order_recorder.h"
#include "server/server_node.h"
#include "server/shard_set.h"
#include "server/staleness/pulled_rows.h"
#include "server/staleness/push_ages.h"
#include "server/staleness_gate.h"
#include "server/step/norm_gate.h"
#include "server/step/step_pushes.h"
#include "server/step/sync_combiner.h"
#include "server/vector_clock.h"
#include "server/watch/server_meters.h"
#include "server/watch/shard_watch.h"

namespace hdps {

struct View;

// One server's protocol with the workers of its view, without membership and commands.
//
// Invariant: as of ServerNode. Rows are only touched inside OnRequest, OnView, DropRows and Reset.
class RowService {
 public:
  // `sections`: as in ServerNodeOptions. `meters` must outlive the service.
  RowService(const Job& job, Executor& executor, PeerId self, const ServerSabotage& sabotage,
             SectionAllocator* sections, ServerMeters& meters);

  // Sets the memory limit of shards made from now on; null: no limit. `memory` must outlive the
  // service.
  void UseMemory(ServerMemoryLimit* memory) { memory_ = memory; }
  // Sets whether callers that are no members may read rows. They are refused until then.
  void AnswerGuests(bool guests_read) { guests_read_ = guests_read; }

  // Takes the workers of a new view; `shards` are this server's. Shards that the server already had
  // keep their rows, others start empty.
  void OnView(const View& view, const std::vector<ShardId>& shards);
  bool Serves(PeerId worker) const { return workers_.contains(worker); }
  // Returns the rank of a worker of the view; none if the peer is not one.
  std::optional<WorkerId> WorkerOf(PeerId peer) const {
    const auto at = workers_.find(peer);
    return at == workers_.end() ? std::nullopt : std::optional(at->second);
  }
  // Answers a caller that is no worker of the view only if it reads rows. Requires: OnView was
  // called.
  void OnRequest(PeerId from, const Frame& frame);
  // Makes a change that another service has made at the request of `from`, which may have left the
  // job since. Returns false if it never was a worker of a view here.
  bool MakeChange(PeerId from, const Frame& frame);
  // Refuses a request that cannot be served now, if its kind has a reply for that.
  void Postpone(PeerId from, const Frame& frame);
  // Sets every worker's clock to `clock` and drops parked pulls and held pushes. `shards` are the
  // new rows; null: the present ones stay.
  void Reset(Clock clock, std::unique_ptr<ShardSet> shards);

  // Drops all rows, before others are loaded.
  void DropRows();

  std::vector<Outgoing> TakeOutgoing() { return std::exchange(outgoing_, {}); }
  // Acknowledgments of changes; they may have to wait until backups have made the change.
  std::vector<Outgoing> TakeAcks() { return std::exchange(acks_, {}); }
  // Returns the change that the last OnRequest made, if any and if changes are recorded: a frame
  // with which another service can make the same change.
  std::optional<Frame> TakeChange() { return std::exchange(change_, std::nullopt); }
  void RecordChanges(bool record) { records_changes_ = record; }
  // Sets whether this server is the group's primary, which it is until told otherwise. Only a
  // primary answers pulls, counts the ages of pushes and compensates them: what backups are sent is
  // compensated.
  void Lead(bool leads) {
    leads_ = leads;
    if (!leads) pulled_.Clear();
  }
  // Records answered pulls, applied pushes and advances there from now on.
  void RecordOrder(const GroupOrder& order) { order_ = order; }
  // For tests: forgets which pushes were taken.
  void ForgetPushes() {
    ledgers_.clear();
    store_ledgers_.clear();
  }
  const ShardSet& shards() const { return *shards_; }
  ShardSet& shards() { return *shards_; }
  // The failure of the rows, if they hit a limit or their disk failed. Rows may be wrong from then
  // on, so no request may be answered.
  Status failure() const { return shards_ == nullptr ? Status() : shards_->failure(); }
  // Number of steps that every worker has finished, as far as this server knows.
  Clock finished() const {
    if (norm_.holds()) return norm_.clock();
    return sync_ ? combiner_.next() : clocks_.min();
  }
  // Number of steps that the fastest worker has finished since Reset(), also if it has left.
  Clock furthest() const { return clocks_.furthest(); }
  const ServerCounters& counters() const { return counters_; }
  // Appends the loads of all shards here.
  void AddLoads(std::vector<ShardLoad>* loads) const { watch_.AddTo(*shards_, loads); }
  // Returns the workers whose part of the present step is missing while a request waits for it.
  std::vector<PeerId> WaitsFor() const;

 private:
  struct Requester {  // Address of a reply.
    PeerId peer;
    uint64_t request_id = 0;
  };
  struct ParkedPull {
    Requester requester;
    WorkerId worker;
    PullRequest request;
    std::shared_ptr<const KeyList> list;
    int64_t parked_ns = 0;  // When it was parked, by the clock of the meters.
  };

  // The source of a request, and the frame from which it was decoded.
  struct Call {
    Requester requester;
    WorkerId worker;
    const Frame& frame;
  };
  void Take(const Call& call);
  // Answers a read of a caller that is no worker, of which nothing is remembered.
  void OnGuest(PeerId from, const Frame& frame);
  void On(const Call& call, PullRequest request);
  void On(const Call& call, PushRequest request);
  void On(const Call& call, const AdvanceRequest& request);
  void On(const Call& call, const StoreRequest& request);
  void On(const Call& call, const SquaresRequest& request);

  // How a request gives its keys: it carries them, to be checked and remembered under `number`, or
  // it names a list that was sent earlier under that number.
  struct KeyReference {
    uint64_t number = 0;
    RowShape shape = RowShape::kWeights;
  };
  Result<std::shared_ptr<const KeyList>> FindKeys(PeerId worker, const KeyReference& reference,
                                                  const std::vector<TableKeys>& tables,
                                                  const Buffer& keys);
  // Checks the keys of a request and plans it.
  Result<RequestPlan> PlanKeys(RowShape shape, const std::vector<TableKeys>& tables,
                               const Buffer& keys) const;
  OwnShards own_shards() const { return {shards_->ids().size(), shards_moved_}; }
  // Checks that the push is whole and finds its keys.
  Status PlanPush(PeerId worker, PlannedPush* push);
  bool Admitted(const ParkedPull& pull) const;
  // Takes a checked push: holds it for its step or applies it. The ack reports the status.
  Status TakePush(PeerId peer, WorkerId worker, PlannedPush push, PushAck* ack);
  // Returns the verdict of the ledger; not ok if the push cannot be taken.
  Result<PushLedger::Verdict> JudgePush(PeerId peer, WorkerId worker, const PushRequest& push);
  // async, ssp: applies a push by itself, unless its rows are too old.
  void ApplyAlone(PeerId peer, WorkerId worker, PlannedPush push, PushAck* ack);
  // Counts how old the rows of a push are, table by table, as far as it is known. Returns the
  // updates that the oldest of them missed.
  uint64_t CountAges(const PlannedPush& push);
  StepPushes PushesOf(SyncCombiner::Step step) const;
  void ApplyStep(SyncCombiner::Step step, float shrink);  // `shrink` as in UpdateTerms.
  // Under clip_norm: computes the squares of a complete step and answers requests for them.
  void Measure(SyncCombiner::Step step);
  // Applies the steps that have become complete, then answers the pulls that may now read.
  void Progress();
  // Returns whether the rows hold those pushes of the pull's own worker that it must see.
  bool HoldsOwnPushes(const ParkedPull& pull) const;
  void AnswerPull(const ParkedPull& pull);

  // ---- Places whose process is replaced.
  // Answers where the place stands, with its counts before step `at`; 0: before the first step of
  // which a push may be missing.
  void TellStand(const Call& call, Clock at);
  // Keeps the rows that a pull was answered, for a process that makes its step again.
  void KeepRows(const ParkedPull& pull, const Buffer& rows);
  // Answers with the rows that a dead process was answered; false if there are none.
  bool AnswerFromKept(const ParkedPull& pull);
  // Is true if the rows that a step should read were changed by that step.
  bool IsTooLate(const ParkedPull& pull) const;

  // Refuses a request that was not decoded.
  void RefuseUnread(PeerId from, const Frame& frame, const Status& why);
  // Refuses a decoded request; `reply` has its other fields set.
  template <typename Message>
  void Refuse(Requester requester, Message reply, const Status& why);
  void CountRefusal(const Status& why);
  static SpanOf SpanOfRequest(const Requester& requester, Clock step) {
    return {step, RequestLink(requester.peer, requester.request_id), /*serves=*/true};
  }
  void Reply(Requester requester, Frame frame);
  void Acknowledge(Requester requester, Frame frame);

  const Job& job_;
  Executor& executor_;
  const PeerId self_;
  const ServerSabotage sabotage_;
  SectionAllocator* const sections_;
  ServerMeters& meters_;
  const bool sync_;

  ViewId view_;
  std::map<PeerId, WorkerId> workers_;
  // The last processes that left places which others have now.
  std::vector<std::pair<PeerId, WorkerId>> former_;
  ServerMemoryLimit* memory_ = nullptr;
  bool guests_read_ = false;
  std::unique_ptr<ShardSet> shards_;
  bool shards_moved_ = false;  // An earlier view gave this server other shards.
  Clock ended_step_ = 0;       // async, ssp: the last step that every worker has finished.
  VectorClock clocks_;
  std::map<PeerId, PushLedger> ledgers_, store_ledgers_;
  std::map<PeerId, KeyListCache> lists_;
  std::map<WorkerId, PushWatermark> progress_;  // Not in sync mode, where the combiner knows it.
  StalenessGate<ParkedPull> gate_;
  PushAges ages_;      // Not in sync mode.
  PulledRows pulled_;  // Likewise.
  bool leads_ = true;
  SyncCombiner combiner_;
  RankStands stands_;
  KeptPulls kept_;  // In sync mode.
  // Sync mode, in a job whose lost workers are replaced in place: others would copy rows for
  // nobody.
  const bool keeps_pulls_;
  const Clock steps_taken_up_;  // As StepsTakenUp(): if there are some, by the same process too.
  const bool clips_norm_;       // Sync mode clips the norm of all gradients of a step.
  NormGate<Requester> norm_;    // At the same step as the combiner.
  std::vector<Outgoing> outgoing_, acks_;
  bool records_changes_ = false;
  GroupOrder order_;
  std::optional<Frame> change_;
  ServerCounters counters_;
  ShardWatch watch_;
};

}  // namespace hdps
