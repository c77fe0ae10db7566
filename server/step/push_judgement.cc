// Plans requests, and decides which pushes a server takes: each once, in its step, and none that
// contradicts another.
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "common/job/job_spec.h"
#include "common/job/spec/cluster_spec.h"
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

Status RowService::TakePush(PeerId peer, WorkerId worker, PlannedPush push) {
  const Clock clock = push.request.clock;
  const Sequence sequence = push.request.sequence;
  const uint32_t part = push.request.part;
  PushLedger& ledger = ledgers_.try_emplace(peer, job_.cluster.pushes_in_flight_max).first->second;
  const PushLedger::Verdict verdict =
      sabotage_.no_ledger ? PushLedger::Verdict::kFirst : ledger.Check(sequence);
  const std::optional<PeerId> taken = stands_.TakenFrom(worker, clock, part);
  if (taken && *taken != peer && !sabotage_.no_ledger && !sabotage_.heir_pushes_again) {
    // A process that had this place before has pushed it. A copy of this frame may come when the
    // place has finished the step.
    if (verdict == PushLedger::Verdict::kFirst) ledger.Record(sequence);
    ++counters_.pushes_repeated;
    return {};
  }
  if (sync_ && clock < combiner_.next()) {  // Its step was applied, so it was taken.
    if (verdict == PushLedger::Verdict::kFirst && !sabotage_.no_ledger) {
      return {Code::kCorruption, "push " + std::to_string(sequence.value) + " of clock " +
                                     std::to_string(clock) +
                                     ", whose step has been applied without it"};
    }
    ++counters_.pushes_repeated;
    return {};
  }
  if (sync_ && combiner_.TooFarAhead(clock)) {  // Others' pushes must come first.
    return {Code::kUnavailable, "push of clock " + std::to_string(clock) +
                                    " while the step at hand is " +
                                    std::to_string(combiner_.next())};
  }
  if (!sabotage_.no_ledger) {
    switch (verdict) {
      case PushLedger::Verdict::kFirst:
        break;
      case PushLedger::Verdict::kRepeat:
        if (sync_ && !combiner_.Holds(worker, clock, part)) {
          return {Code::kCorruption, "push " + std::to_string(sequence.value) +
                                         " was one of another clock than " + std::to_string(clock)};
        }
        ++counters_.pushes_repeated;
        return {};
      case PushLedger::Verdict::kTooOld:
        return {Code::kCorruption,
                "push " + std::to_string(sequence.value) + " is older than the last " +
                    std::to_string(job_.cluster.pushes_in_flight_max) +
                    " of this worker; no more than that many may be on their way"};
    }
    if (sync_ && combiner_.Holds(worker, clock, part)) {
      return {Code::kCorruption, "a second push of clock " + std::to_string(clock) +
                                     "; a worker sends one for each step, key list and server"};
    }
    ledger.Record(sequence);
    HDPS_FAILPOINT("server.push.recorded");
  }
  ++counters_.pushes;
  stands_.Take(worker, peer, clock, part, push.request.counts);
  change_ = records_changes_ ? WithKeys(push) : Frame();
  if (push.request.num_examples > 0) {
    push.scale = std::ldexp(PartScale(job_.parallel, push.request.num_examples),
                            -push.request.scale_exponent);
  }
  if (sync_) {
    if (!combiner_.Holds(worker, clock, part)) combiner_.Hold(worker, std::move(push));
    return {};
  }
  std::vector<PlannedPush> alone;
  alone.push_back(std::move(push));
  StepPushes(job_, std::move(alone), 1, clock).Apply(*shards_, 1);
  progress_.at(worker).Add(clock);
  return {};
}

}  // namespace hdps
