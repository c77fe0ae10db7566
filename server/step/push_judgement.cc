// Plans requests, and decides which pushes a server takes: each once, in its step, and none that
// contradicts another.
#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/job/job_spec.h"
#include "common/job/spec/cluster_spec.h"
#include "common/job/spec/table_spec.h"
#include "common/job/spec/train_spec.h"
#include "common/job/step_lists.h"
#include "common/platform/failpoint.h"
#include "embedding/memory/gradient_scale.h"
#include "server/row_service.h"

namespace hdps {

Result<RequestPlan> RowService::PlanKeys(RowShape shape, const std::vector<TableKeys>& tables,
                                         const Buffer& keys) const {
  HDPS_ASSIGN_OR_RETURN(RequestPlan plan, PlanRequest(job_, own_shards(), shape, tables));
  HDPS_RETURN_IF_ERROR(shards_->CheckKeys(plan, keys));
  JoinKeys(shards_->first_of_group(), keys, &plan);
  return plan;
}

Result<std::shared_ptr<const KeyList>> RowService::FindKeys(PeerId worker,
                                                            const KeyReference& reference,
                                                            const std::vector<TableKeys>& tables,
                                                            const Buffer& keys) {
  const size_t steps_max = job_.train.lookahead + job_.cluster.pushes_in_flight_max + 2;
  const size_t lists_max = ListsOfStep(job_) * steps_max;
  KeyListCache& lists = lists_.try_emplace(worker, lists_max).first->second;
  if (tables.empty() && reference.number != 0) {
    std::shared_ptr<const KeyList> known = lists.Find(reference.number);
    if (known != nullptr) return known;
    return Status(Code::kNotFound, "key list " + std::to_string(reference.number) +
                                       " is not known here; send its keys");
  }
  if (reference.number != 0 && reference.shape != RowShape::kWeights) {
    return Status(Code::kCorruption, "a key list for rows with their state; none is kept");
  }
  auto list = std::make_shared<KeyList>();
  HDPS_ASSIGN_OR_RETURN(list->plan, PlanKeys(reference.shape, tables, keys));
  list->tables = tables;
  list->keys = keys;
  if (reference.number != 0) lists.Remember(reference.number, list);
  return std::shared_ptr<const KeyList>(std::move(list));
}

Status RowService::PlanPush(PeerId worker, PlannedPush* push) {
  const PushRequest& request = push->request;
  if (request.part >= ListsOfStep(job_)) {
    return {Code::kCorruption, "part " + std::to_string(request.part) +
                                   " of a push; a step of this job has " +
                                   std::to_string(ListsOfStep(job_))};
  }
  HDPS_ASSIGN_OR_RETURN(push->list, FindKeys(worker, {request.list}, request.tables, request.keys));
  HDPS_RETURN_IF_ERROR(CheckJoined(job_, shards_->first_of_group(), push->list->plan));
  return CheckGradients(*shards_, *push);
}

Result<PushLedger::Verdict> RowService::JudgePush(PeerId peer, WorkerId worker,
                                                  const PushRequest& push) {
  using Verdict = PushLedger::Verdict;
  const Clock clock = push.clock;
  const Sequence sequence = push.sequence;
  PushLedger& ledger = ledgers_.try_emplace(peer, job_.cluster.pushes_in_flight_max).first->second;
  const Verdict verdict = sabotage_.no_ledger ? Verdict::kFirst : ledger.Check(sequence);
  std::optional<PeerId> taken = stands_.TakenFrom(worker, clock, push.part);
  if (sabotage_.heir_believed && clock < stands_.reached(worker) && !taken) {
    taken = stands_.TakenFrom(worker, stands_.reached(worker) - 1, push.part);
  }
  const bool may_come_again = taken && (*taken != peer || steps_taken_up_ > 0);
  if (may_come_again && !sabotage_.no_ledger && !sabotage_.heir_pushes_again) {
    // A process that had this place before has pushed it, or this one has and makes the step again.
    // A copy of this frame may come when the place has finished the step.
    if (verdict == Verdict::kFirst) ledger.Record(sequence);
    return Verdict::kRepeat;
  }
  if (sync_ && clock < combiner_.next()) {  // Its step was applied, so it was taken.
    if (verdict == Verdict::kFirst && !sabotage_.no_ledger) {
      return Status(Code::kCorruption, "push " + std::to_string(sequence.value) + " of clock " +
                                           std::to_string(clock) +
                                           ", whose step has been applied without it");
    }
    return Verdict::kRepeat;
  }
  if (sync_ && combiner_.TooFarAhead(clock)) {  // Others' pushes must come first.
    return Status(Code::kUnavailable, "push of clock " + std::to_string(clock) +
                                          " while the step at hand is " +
                                          std::to_string(combiner_.next()));
  }
  if (sabotage_.no_ledger) return Verdict::kFirst;
  const bool held = sync_ && combiner_.Holds(worker, clock, push.part);
  if (verdict == Verdict::kRepeat && sync_ && !held) {
    return Status(Code::kCorruption, "push " + std::to_string(sequence.value) +
                                         " was one of another clock than " + std::to_string(clock));
  }
  if (verdict == Verdict::kTooOld) {
    return Status(Code::kCorruption,
                  "push " + std::to_string(sequence.value) + " is older than the last " +
                      std::to_string(job_.cluster.pushes_in_flight_max) +
                      " of this worker; no more than that many may be on their way");
  }
  if (verdict == Verdict::kFirst && held) {
    return Status(Code::kCorruption, "a second push of clock " + std::to_string(clock) +
                                         "; a worker sends one for each step, key list and server");
  }
  return verdict;
}

Status RowService::TakePush(PeerId peer, WorkerId worker, PlannedPush push, PushAck* ack) {
  const Clock clock = push.request.clock;
  const uint32_t part = push.request.part;
  HDPS_ASSIGN_OR_RETURN(const PushLedger::Verdict verdict, JudgePush(peer, worker, push.request));
  if (verdict == PushLedger::Verdict::kRepeat) {
    ack->too_old = ledgers_.at(peer).WasLeftOut(push.request.sequence);
    ++counters_.pushes_repeated;
    return {};
  }
  if (!sabotage_.no_ledger) {
    ledgers_.at(peer).Record(push.request.sequence);
    HDPS_FAILPOINT("server.push.recorded");
  }
  ++counters_.pushes;
  stands_.Take(worker, peer, clock, part, push.request.counts, push.request.messages);
  if (push.request.num_examples > 0) {
    push.scale = std::ldexp(PartScale(job_.parallel, push.request.num_examples),
                            -push.request.scale_exponent);
  }
  if (!sync_) {
    ApplyAlone(peer, worker, std::move(push), ack);
    return {};
  }
  change_ = records_changes_ ? WithKeys(push) : Frame();
  if (!combiner_.Holds(worker, clock, part)) combiner_.Hold(worker, std::move(push));
  return {};
}

uint64_t RowService::CountAges(const PlannedPush& push) {
  const PushRequest& request = push.request;
  uint64_t oldest = 0;
  for (const TableKeys& table : push.list->tables) {
    if (table.num_keys == 0) continue;
    const bool dense = job_.tables[table.table.value].dense;
    const std::optional<uint64_t> missed =
        ages_.MissedSince(dense ? request.dense_mark : request.rows_mark);
    if (!missed) continue;
    const uint64_t late = sabotage_.ages_late ? 1 : 0;
    const uint64_t age = ClocksOf(*missed + late, workers_.size());
    if (leads_) meters_.CountAge(table.table, age);
    oldest = std::max(oldest, *missed);
  }
  return oldest;
}

void RowService::ApplyAlone(PeerId peer, WorkerId worker, PlannedPush push, PushAck* ack) {
  const Clock clock = push.request.clock;
  order_.Pushed(worker, clock, push.request.part);
  const uint64_t examples = push.request.num_examples;
  const uint64_t missed = examples > 0 ? CountAges(push) : 0;
  const uint64_t age = ClocksOf(missed, workers_.size());
  ack->too_old = job_.train.max_staleness > 0 && age > job_.train.max_staleness;
  if (ack->too_old) {
    if (leads_) ++counters_.pushes_too_old;  // A copy judges the same push again.
    if (!sabotage_.no_ledger) ledgers_.at(peer).LeaveOut(push.request.sequence);
  } else if (pulled_.on() && examples > 0) {
    pulled_.Compensate(peer, SumScale(job_.parallel, 1, examples), *shards_, &push);
  }
  change_ = records_changes_ ? WithKeys(push) : Frame();
  progress_.at(worker).Add(clock);
  if (ack->too_old) return;
  if (job_.train.staleness_rate && missed > 1) push.request.rate /= static_cast<double>(missed);
  std::vector<PlannedPush> alone;
  alone.push_back(std::move(push));
  StepPushes(job_, std::move(alone), 1, clock).Apply(*shards_, 1);
  if (examples > 0) ages_.CountUpdate();
}

}  // namespace hdps
