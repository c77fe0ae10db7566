// Checks each request, then reads or changes rows. Every branch ends in a reply, a parked pull, or
// a counted drop.
#include "server/row_service.h"

#include <glog/logging.h>

#include <algorithm>
#include <limits>
#include <string>
#include <utility>

#include "common/job/job_spec.h"
#include "common/job/spec/cluster_spec.h"
#include "common/job/spec/table_spec.h"
#include "common/job/step_lists.h"
#include "common/planning/in_place.h"
#include "common/platform/failpoint.h"
#include "common/protocol/message_dispatch.h"
#include "common/protocol/message_frames.h"
#include "common/protocol/status_messages.h"
#include "common/protocol/view.h"
#include "server/groups/refusal.h"

namespace hdps {
RowService::RowService(const Job& job, Executor& executor, PeerId self,
                       const ServerSabotage& sabotage, SectionAllocator* sections,
                       ServerMeters& meters)
    : job_(job),
      executor_(executor),
      self_(self),
      sabotage_(sabotage),
      sections_(sections),
      meters_(meters),
      sync_(job.train.mode == Mode::kSync),
      gate_(StalenessBoundOf(job.train),
            // Pulls of a step that is made again wait beside those of the first time.
            ListsOfStep(job) * (job.cluster.pushes_in_flight_max + job.train.lookahead) *
                (StepsTakenUp(job) > 0 ? 2 : 1)),
      pulled_(job),
      combiner_(job.cluster.pushes_in_flight_max, ListsOfStep(job)),
      // An announcement that is lost is sent again long after the pushes behind it.
      stands_(4 * size_t{job.cluster.pushes_in_flight_max}, ListsOfStep(job)),
      kept_(ListsOfStep(job) * (size_t{job.cluster.pushes_in_flight_max} + 2 +
                                static_cast<size_t>(StepsTakenUp(job)))),
      keeps_pulls_(sync_ && WhyNotInPlace(job).empty()),
      steps_taken_up_(StepsTakenUp(job)),
      clips_norm_(sync_ && job.train.clip_norm > 0) {}

void RowService::OnRequest(PeerId from, const Frame& frame) {
  CHECK(shards_ != nullptr) << "a request before the first view";
  const auto worker = workers_.find(from);
  if (frame.header.view > view_.value) return Postpone(from, frame);
  if (worker == workers_.end()) return OnGuest(from, frame);
  if (frame.header.view < view_.value && !sabotage_.old_views_served) {
    return RefuseUnread(
        from, frame,
        {Code::kStaleView, "routed by view " + std::to_string(frame.header.view) +
                               ", this server is in view " + std::to_string(view_.value)});
  }
  Take({{from, frame.header.request_id}, worker->second, frame});
}

void RowService::Take(const Call& call) {
  change_.reset();
  const auto take = [&](const Status& decoded, auto request) {
    if (decoded.ok()) return On(call, std::move(request));
    ++counters_.dropped;
  };
  const bool known =
      DispatchMessage<PullRequest, PushRequest, AdvanceRequest, StoreRequest, SquaresRequest>(
          call.frame, take);
  if (!known) ++counters_.dropped;
}

void RowService::Postpone(PeerId from, const Frame& frame) {
  ++counters_.dropped;
  RefuseUnread(from, frame,
               {Code::kUnavailable, "this server is not ready for requests of view " +
                                        std::to_string(frame.header.view)});
}

void RowService::Acknowledge(Requester requester, Frame frame) {
  Reply(requester, std::move(frame));
  acks_.push_back(std::move(outgoing_.back()));
  outgoing_.pop_back();
}

void RowService::Reply(Requester requester, Frame frame) {
  frame.header.sender = self_.value;
  frame.header.view = view_.value;
  frame.header.request_id = requester.request_id;
  outgoing_.push_back({requester.peer, std::move(frame)});
}

void RowService::CountRefusal(const Status& why) {
  counters_.refused += why.code() != Code::kUnavailable;
  if (why.code() == Code::kCorruption) {
    LOG_EVERY_N(WARNING, 100) << "refused a request: " << why.message();
  }
}

template <typename Message>
void RowService::Refuse(Requester requester, Message reply, const Status& why) {
  CHECK(!why.ok());
  CountRefusal(why);
  reply.code = why.code();
  reply.message = why.message();
  Reply(requester, EncodeMessage(reply));
}

void RowService::RefuseUnread(PeerId from, const Frame& frame, const Status& why) {
  CountRefusal(why);
  std::optional<Frame> refusal = RefusalOf(frame, why, finished());
  if (!refusal) {
    counters_.dropped += why.code() != Code::kUnavailable;  // The worker repeats an advance.
    return;
  }
  refusal->header.sender = self_.value;
  refusal->header.view = view_.value;
  outgoing_.push_back({from, *std::move(refusal)});
}

// ---- Pull.

void RowService::On(const Call& call, PullRequest request) {
  const Requester requester = call.requester;
  const PullMode mode = request.mode;
  const RowShape shape = mode == PullMode::kWithState ? RowShape::kWithState : RowShape::kWeights;
  const auto refuse = [&](const Status& why) {
    PullReply reply;
    reply.min_clock = finished();
    Refuse(requester, std::move(reply), why);
  };
  Result<std::shared_ptr<const KeyList>> list =
      FindKeys(requester.peer, {request.list, shape}, request.tables, request.keys);
  if (!list.ok()) return refuse(list.status());
  ParkedPull pull{requester, call.worker, std::move(request), *std::move(list)};
  if (AnswerFromKept(pull)) return;
  if (IsTooLate(pull)) {
    // Nothing is wrong with the request: a server that has just become the primary of these rows
    // has no step's rows kept. Another process may succeed where all go back.
    return refuse({Code::kTimeout, "the rows of step " + std::to_string(pull.request.clock) +
                                       " are not kept, and the step was applied"});
  }
  if (!IsTraining(mode) || sabotage_.no_gate || Admitted(pull)) return AnswerPull(pull);
  ++counters_.pulls_parked;
  const PullAdmission turn = AdmissionOf(job_.train.mode, pull.request);
  const ParkedPull* const first = gate_.Find(requester.peer, requester.request_id, turn);
  pull.parked_ns = first != nullptr ? first->parked_ns : meters_.NowNs();
  if (!gate_.Park(requester.peer, requester.request_id, turn, std::move(pull))) {
    refuse({Code::kResourceExhausted,
            "too many pulls of this worker wait for slower workers already; send fewer at once"});
  }
}

bool RowService::Admitted(const ParkedPull& pull) const {
  return gate_.Admits(AdmissionOf(job_.train.mode, pull.request).clock, finished()) &&
         HoldsOwnPushes(pull);
}

bool RowService::HoldsOwnPushes(const ParkedPull& pull) const {
  return sync_ || progress_.at(pull.worker).next() >= pull.request.pushed;
}

void RowService::AnswerPull(const ParkedPull& pull) {
  const int64_t begin = meters_.NowNs();
  ++counters_.pulls;
  const PullRequest& request = pull.request;
  order_.Pulled(pull.worker, pull.requester.peer, pull.requester.request_id, request);
  const RecordedSpan span = meters_.Record(SpanOfRequest(pull.requester, request.clock), "pull");
  const auto& [tables, keys, plan] = *pull.list;
  const PeerId peer = pull.requester.peer;
  // No memory is set aside for guests.
  const ShardSet::RowSection section{request.format, Serves(peer) ? sections_ : nullptr, peer};
  if (const Clock turn = AdmissionOf(job_.train.mode, request).clock;
      IsTraining(request.mode) && turn > finished()) {
    const auto ahead = static_cast<uint64_t>(turn - finished());
    counters_.staleness_max = std::max(counters_.staleness_max, ahead);
  }
  PullReply reply;
  reply.min_clock = finished();
  reply.mark = sync_ ? 0 : ages_.mark();
  reply.format = request.format;
  reply.tables = tables;
  for (TableKeys& table : reply.tables) table.shard_counts.clear(), table.keys_of = 0;
  if (request.mode == PullMode::kRefresh) {
    // Without one order of all steps nothing is repaired: prefetched rows stay as they were read.
    const bool repairs = sync_ && !sabotage_.no_repair;
    const int64_t since = repairs ? request.since : std::numeric_limits<int64_t>::max();
    const ShardSet::Changes changes = shards_->ReadChanged(plan, keys, since, section);
    for (size_t t = 0; t < tables.size(); ++t) reply.tables[t].num_keys = changes.num_rows[t];
    reply.rows = changes.rows;
    reply.positions = changes.positions;
  } else if (request.mode == PullMode::kPrefetch) {
    std::erase_if(reply.tables,
                  [this](const TableKeys& table) { return job_.tables[table.table.value].dense; });
    reply.rows = shards_->Read(WithoutDense(job_, plan), keys, section);
  } else {
    reply.rows = shards_->Read(plan, keys, section);
  }
  if (pulled_.on() && IsTraining(request.mode)) {
    pulled_.Keep(peer, request, pull.list, reply.mark, *shards_);
  }
  KeepRows(pull, reply.rows);
  HDPS_FAILPOINT("server.pull.before_answer");
  Reply(pull.requester, EncodeMessage(reply));
  meters_.CountKeys(tables);
  watch_.Count(plan, meters_.Took(FigureNamed("hdps_server_pull_seconds"), begin));
}

// ---- Push.

void RowService::On(const Call& call, PushRequest request) {
  const int64_t begin = meters_.NowNs();
  RecordedSpan span = meters_.Record(SpanOfRequest(call.requester, request.clock), "push");
  PushAck ack;
  ack.sequence = request.sequence;
  PlannedPush push;
  push.request = std::move(request);
  Status status = PlanPush(call.requester.peer, &push);
  HDPS_FAILPOINT("server.push.judged");
  const std::shared_ptr<const KeyList> list = push.list;
  if (status.ok()) status = TakePush(call.requester.peer, call.worker, std::move(push), &ack);
  if (!status.ok()) return Refuse(call.requester, std::move(ack), status);
  HDPS_FAILPOINT("server.push.before_ack");
  Acknowledge(call.requester, EncodeMessage(ack));
  watch_.Count(list->plan, meters_.Took(FigureNamed("hdps_server_push_seconds"), begin));
  span.End();
  Progress();
}

StepPushes RowService::PushesOf(SyncCombiner::Step step) const {
  return {job_, std::move(step.pushes), clocks_.clocks().size(), step.clock};
}

void RowService::ApplyStep(SyncCombiner::Step step, float shrink) {
  const Clock clock = step.clock;
  const RecordedSpan span(meters_.recorder(), {clock}, "update", "update by a whole step");
  ++counters_.steps;
  const int64_t begin = meters_.NowNs();
  const StepPushes pushes = PushesOf(std::move(step));
  pushes.Apply(*shards_, shrink);
  shards_->EndStep(clock + 1);
  watch_.Count(pushes.pushes(), meters_.Since(begin));
}

void RowService::Measure(SyncCombiner::Step step) {
  const SquaresReply reply{Code::kOk, "", PushesOf(step).Squares(*shards_)};
  for (const Requester& requester : norm_.Hold(std::move(step), reply.squares))
    Reply(requester, EncodeMessage(reply));
}

void RowService::Progress() {
  while (!norm_.holds()) {
    std::optional<SyncCombiner::Step> step = combiner_.TakeComplete(clocks_);
    if (!step) break;
    clips_norm_ ? Measure(*std::move(step)) : ApplyStep(*std::move(step), 1);
  }
  if (!sync_ && clocks_.min() > ended_step_) {
    ended_step_ = clocks_.min();
    shards_->EndStep(ended_step_);
  }
  const auto holds_own = [this](const ParkedPull& pull) { return HoldsOwnPushes(pull); };
  for (const ParkedPull& pull : gate_.Release(finished(), holds_own)) {
    meters_.WaitedAtGate(SpanOfRequest(pull.requester, pull.request.clock), pull.parked_ns);
    AnswerPull(pull);
  }
}

void RowService::On(const Call& call, const AdvanceRequest& request) {
  if (request.asks) return TellStand(call, request.clock);
  // No worker can have finished a step so far ahead of the present one.
  if (sync_ && combiner_.TooFarAhead(request.clock - 1)) {
    ++counters_.dropped;
    return;
  }
  clocks_.Advance(call.worker, request.clock);
  order_.Advanced(call.worker, request.clock);
  if (std::optional<SyncCombiner::Step> step = norm_.Release(request.clock - 1)) {
    ApplyStep(*std::move(step), ShrinkTo(job_.train.clip_norm, request.squares));
  }
  progress_.at(call.worker).Finish(request.clock);
  const Clock finished = std::max<Clock>(request.clock - steps_taken_up_, 0);
  stands_.Finish(call.worker, finished);
  kept_.Finish(call.worker, finished);
  HDPS_FAILPOINT("server.advance.taken");
  Progress();
  AdvanceAck ack;
  ack.clock = request.clock;
  change_ = records_changes_ ? call.frame : Frame();
  Acknowledge(call.requester, EncodeMessage(ack));
}

void RowService::On(const Call& call, const SquaresRequest& request) {
  if (!clips_norm_) {
    ++counters_.dropped;
    return;
  }
  const Result<std::optional<SquareSum>> squares =
      norm_.Ask(call.requester.peer, request.clock, call.requester);
  if (!squares.ok()) return Refuse(call.requester, SquaresReply(), squares.status());
  if (*squares) Reply(call.requester, EncodeMessage(SquaresReply{Code::kOk, "", **squares}));
}

void RowService::On(const Call& call, const StoreRequest& request) {
  const Result<RequestPlan> plan = PlanKeys(RowShape::kEither, request.tables, request.keys);
  Status status = plan.status();
  if (status.ok()) status = CheckJoined(job_, shards_->first_of_group(), *plan);
  if (status.ok()) status = shards_->CheckFloats(*plan, request.keys, request.rows);
  if (!status.ok()) return Refuse(call.requester, StoreAck(), status);
  PushLedger& ledger =
      store_ledgers_.try_emplace(call.requester.peer, job_.cluster.pushes_in_flight_max)
          .first->second;
  // A store older than the ledger was acknowledged, so it was applied.
  if (sabotage_.no_ledger || ledger.Check(request.sequence) == PushLedger::Verdict::kFirst) {
    if (!sabotage_.no_ledger) ledger.Record(request.sequence);
    shards_->Store(*plan, request);
    change_ = records_changes_ ? call.frame : Frame();
  }
  Acknowledge(call.requester, EncodeMessage(StoreAck()));
}

}  // namespace hdps
