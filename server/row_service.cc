// Judges each request, then changes or reads rows; every branch ends in a reply, a place to wait,
// or a counted drop.
#include "server/row_service.h"

#include <glog/logging.h>

#include <algorithm>
#include <string>
#include <utility>

#include "embedding/step_scale.h"

namespace hdps {
namespace {

Clock BoundOf(const Job& job) {
  switch (job.train.mode) {
    case Mode::kSync:
      return 0;
    case Mode::kAsync:
      return StalenessGate<int>::kUnbounded;
    case Mode::kSsp:
      return job.train.staleness_bound;
  }
  return 0;
}

}  // namespace

RowService::RowService(const Job& job, Executor& executor, PeerId self,
                       const ServerSabotage& sabotage)
    : job_(job),
      executor_(executor),
      self_(self),
      sabotage_(sabotage),
      sync_(job.train.mode == Mode::kSync),
      gate_(BoundOf(job), job.cluster.pushes_in_flight_max),
      combiner_(job.cluster.pushes_in_flight_max) {}

void RowService::OnView(const View& view, const std::vector<ShardId>& shards) {
  view_ = view.view;
  if (shards_ == nullptr || shards_->ids() != shards) {
    shards_ = std::make_unique<ShardSet>(job_, executor_, shards);
  }
  std::map<PeerId, WorkerId> workers;
  for (const Member& member : view.workers) workers[member.peer] = {member.rank};
  for (const auto& [peer, worker] : workers) {
    clocks_.Join(worker);
    progress_.try_emplace(worker, clocks_.of(worker), job_.cluster.pushes_in_flight_max);
  }
  for (const auto& [peer, worker] : workers_) {
    if (workers.count(peer) > 0) continue;
    ledgers_.erase(peer);
    gate_.Forget(peer);
    const bool rank_stays =
        std::any_of(workers.begin(), workers.end(),
                    [&, rank = worker](const auto& other) { return other.second == rank; });
    if (rank_stays) continue;
    clocks_.Leave(worker);
    progress_.erase(worker);
  }
  workers_ = std::move(workers);
  Progress();
}

void RowService::Reset(Clock clock, std::unique_ptr<ShardSet> shards) {
  CHECK(shards->ids() == shards_->ids());
  shards_ = std::move(shards);
  clocks_.Reset(clock);
  combiner_.Reset(clock);
  gate_.Clear();
  for (auto& [worker, progress] : progress_) {
    progress = PushProgress(clock, job_.cluster.pushes_in_flight_max);
  }
}

void RowService::OnRequest(PeerId from, const Frame& frame) {
  const auto worker = workers_.find(from);
  const Asker asker{from, frame.header.request_id};
  if (frame.header.view > view_.value) return Postpone(from, frame);
  if (worker == workers_.end()) {
    ++counters_.dropped;
    return;
  }
  if (frame.header.view < view_.value) {
    return Refuse(
        asker, frame,
        {Code::kStaleView, "routed by view " + std::to_string(frame.header.view) +
                               ", this server is in view " + std::to_string(view_.value)});
  }
  switch (static_cast<MessageKind>(frame.header.kind)) {
    case MessageKind::kPullRequest:
      return OnPull(asker, worker->second, frame);
    case MessageKind::kPushRequest:
      return OnPush(asker, worker->second, frame);
    case MessageKind::kAdvanceRequest:
      return OnAdvance(asker, worker->second, frame);
    case MessageKind::kStoreRequest:
      return OnStore(asker, frame);
    default:
      ++counters_.dropped;
  }
}

void RowService::Postpone(PeerId from, const Frame& frame) {
  ++counters_.dropped;
  Refuse({from, frame.header.request_id}, frame,
         {Code::kUnavailable,
          "this server is not ready for requests of view " + std::to_string(frame.header.view)});
}

template <typename Message>
void RowService::Reply(Asker asker, const Message& message) {
  Frame frame = EncodeMessage(message);
  frame.header.sender = self_.value;
  frame.header.view = view_.value;
  frame.header.request_id = asker.request_id;
  outgoing_.push_back({asker.peer, std::move(frame)});
}

// Answers `frame` with the failure, in the kind of its reply.
void RowService::Refuse(Asker asker, const Frame& frame, const Status& why) {
  counters_.refused += why.code() != Code::kUnavailable;
  if (why.code() == Code::kInvalidArgument) {
    LOG_EVERY_N(WARNING, 100) << "refused a request of peer " << asker.peer.value << ": "
                              << why.message();
  }
  switch (static_cast<MessageKind>(frame.header.kind)) {
    case MessageKind::kPullRequest: {
      PullReply reply;
      reply.code = why.code();
      reply.message = why.message();
      reply.min_clock = finished();
      return Reply(asker, reply);
    }
    case MessageKind::kPushRequest: {
      PushAck ack;
      ack.code = why.code();
      ack.message = why.message();
      PushRequest request;
      if (DecodeMessage(frame, &request).ok()) ack.sequence = request.sequence;
      return Reply(asker, ack);
    }
    case MessageKind::kStoreRequest: {
      StoreAck ack;
      ack.code = why.code();
      ack.message = why.message();
      return Reply(asker, ack);
    }
    default:
      counters_.dropped += why.code() != Code::kUnavailable;  // An advance's repeat comes.
  }
}

// ---- Pull --------------------------------------------------------------------------------------

void RowService::OnPull(Asker asker, WorkerId worker, const Frame& frame) {
  ParkedPull pull{asker, worker, {}, {}};
  Status status = DecodeMessage(frame, &pull.request);
  if (!status.ok()) {
    ++counters_.dropped;
    return;
  }
  const bool train = pull.request.mode == PullMode::kTrain;
  const RowShape shape =
      pull.request.mode == PullMode::kWithState ? RowShape::kWithState : RowShape::kWeights;
  Result<RequestPlan> plan = PlanRequest(job_, shards_->ids().size(), shape, pull.request.tables);
  status = plan.status();
  if (plan.ok()) status = shards_->Check(*plan, pull.request.keys, {});
  if (!status.ok()) return Refuse(asker, frame, status);
  pull.plan = *std::move(plan);

  const Clock clock = pull.request.clock;
  const bool admitted = gate_.Admits(clock, finished()) && HoldsOwnPushes(pull);
  if (!train || sabotage_.no_gate || admitted) return AnswerPull(pull);
  ++counters_.pulls_parked;
  if (!gate_.Park(asker.peer, asker.request_id, clock, std::move(pull))) {
    Refuse(asker, frame,
           {Code::kResourceExhausted,
            std::to_string(job_.cluster.pushes_in_flight_max) +
                " pulls of this worker wait for slower workers already; send fewer at once"});
  }
}

bool RowService::HoldsOwnPushes(const ParkedPull& pull) const {
  return sync_ || progress_.at(pull.worker).next() >= pull.request.pushed;
}

void RowService::AnswerPull(const ParkedPull& pull) {
  ++counters_.pulls;
  const bool train = pull.request.mode == PullMode::kTrain;
  if (train && pull.request.clock > finished()) {
    const auto ahead = static_cast<uint64_t>(pull.request.clock - finished());
    counters_.staleness_max = std::max(counters_.staleness_max, ahead);
  }
  PullReply reply;
  reply.min_clock = finished();
  reply.tables = pull.request.tables;
  for (TableKeys& table : reply.tables) table.shard_counts.clear();
  reply.rows = shards_->Read(pull.plan, pull.request.keys);
  Reply(pull.asker, reply);
}

// ---- Push --------------------------------------------------------------------------------------

void RowService::OnPush(Asker asker, WorkerId worker, const Frame& frame) {
  PlannedPush push;
  if (!DecodeMessage(frame, &push.request).ok()) {
    ++counters_.dropped;
    return;
  }
  PushAck ack;
  ack.sequence = push.request.sequence;
  Status status = PlanPush(&push);
  if (status.ok()) status = TakePush(asker.peer, worker, std::move(push));
  if (!status.ok()) return Refuse(asker, frame, status);
  Reply(asker, ack);
  Progress();
}

Status RowService::PlanPush(PlannedPush* push) const {
  HDPS_ASSIGN_OR_RETURN(push->plan, PlanRequest(job_, shards_->ids().size(), RowShape::kWeights,
                                                push->request.tables));
  return shards_->Check(push->plan, push->request.keys, push->request.gradients.As<float>());
}

Status RowService::TakePush(PeerId peer, WorkerId worker, PlannedPush push) {
  const Clock clock = push.request.clock;
  const Sequence sequence = push.request.sequence;
  if (sync_ && clock < combiner_.next()) {  // Its step has been applied, so it was taken.
    ++counters_.pushes_repeated;
    return {};
  }
  if (sync_ && combiner_.TooFarAhead(clock)) {  // Others' pushes must come first.
    return {Code::kUnavailable, "push of clock " + std::to_string(clock) +
                                    " while the step at hand is " +
                                    std::to_string(combiner_.next())};
  }
  PushLedger& ledger = ledgers_.try_emplace(peer, job_.cluster.pushes_in_flight_max).first->second;
  if (!sabotage_.no_ledger) {
    switch (ledger.Judge(sequence)) {
      case PushLedger::Verdict::kFirst:
        break;
      case PushLedger::Verdict::kRepeat:
        ++counters_.pushes_repeated;
        return {};
      case PushLedger::Verdict::kTooOld:
        return {Code::kInvalidArgument,
                "push " + std::to_string(sequence.value) + " is older than the last " +
                    std::to_string(job_.cluster.pushes_in_flight_max) +
                    " of this worker; no more than that many may be on their way"};
    }
    if (sync_ && combiner_.Holds(worker, clock)) {
      return {Code::kInvalidArgument, "a second push of clock " + std::to_string(clock) +
                                          "; a worker sends one for each step and server"};
    }
    ledger.Record(sequence);
  }
  ++counters_.pushes;
  if (push.request.num_examples > 0) {
    push.scale = PartScale(job_.parallel, push.request.num_examples);
  }
  if (sync_) {
    if (!combiner_.Holds(worker, clock)) combiner_.Hold(worker, std::move(push));
    return {};
  }
  std::vector<PlannedPush> alone;
  alone.push_back(std::move(push));
  ApplyNow(std::move(alone), 1, clock);
  progress_.at(worker).Take(clock);
  return {};
}

void RowService::ApplyNow(std::vector<PlannedPush> pushes, uint64_t workers, Clock clock) {
  uint64_t examples = 0;
  for (const PlannedPush& push : pushes) examples += push.request.num_examples;
  // Who had no examples has no mean, and nothing to add.
  std::erase_if(pushes, [](const PlannedPush& push) { return push.request.num_examples == 0; });
  if (pushes.empty()) return;
  shards_->Apply(pushes, SumScale(job_.parallel, workers, examples), clock + 1);
}

void RowService::Progress() {
  while (std::optional<SyncCombiner::Step> step = combiner_.TakeComplete(clocks_)) {
    ++counters_.steps;
    ApplyNow(std::move(step->pushes), clocks_.clocks().size(), step->clock);
  }
  const auto holds_own = [this](const ParkedPull& pull) { return HoldsOwnPushes(pull); };
  for (const ParkedPull& pull : gate_.Release(finished(), holds_own)) AnswerPull(pull);
}

// ---- Advance, Store ----------------------------------------------------------------------------

void RowService::OnAdvance(Asker asker, WorkerId worker, const Frame& frame) {
  AdvanceRequest request;
  if (!DecodeMessage(frame, &request).ok()) {
    ++counters_.dropped;
    return;
  }
  clocks_.Advance(worker, request.clock);
  progress_.at(worker).Finish(request.clock);
  Progress();
  AdvanceAck ack;
  ack.clock = request.clock;
  Reply(asker, ack);
}

void RowService::OnStore(Asker asker, const Frame& frame) {
  StoreRequest request;
  if (!DecodeMessage(frame, &request).ok()) {
    ++counters_.dropped;
    return;
  }
  Result<RequestPlan> plan =
      PlanRequest(job_, shards_->ids().size(), RowShape::kEither, request.tables);
  Status status = plan.status();
  if (plan.ok()) status = shards_->Check(*plan, request.keys, request.rows.As<float>());
  if (!status.ok()) return Refuse(asker, frame, status);
  shards_->Store(*plan, request);
  Reply(asker, StoreAck());
}

std::vector<Outgoing> RowService::TakeOutgoing() { return std::exchange(outgoing_, {}); }

}  // namespace hdps
