// Joins the row service and its replication.
#include "server/groups/shard_group.h"

#include <algorithm>
#include <iterator>
#include <string>
#include <utility>

#include "common/job/job_spec.h"
#include "common/job/spec/cluster_spec.h"
#include "common/platform/memory_full.h"
#include "common/protocol/view.h"
#include "server/record/order_gate.h"
#include "server/record/order_recorder.h"

namespace hdps {
namespace {

bool IsChange(MessageKind kind) {
  return kind == MessageKind::kPushRequest || kind == MessageKind::kAdvanceRequest ||
         kind == MessageKind::kStoreRequest;
}

}  // namespace

ShardGroup::ShardGroup(const Job& job, Executor& executor, const ShardGroupOptions& options)
    : job_(job),
      options_(options),
      rows_(job, executor, options.self, options.sabotage, options.sections, *options.meters),
      replication_({.group = options.group,
                    .self = options.self,
                    .retry_ms = job.cluster.request_retry_ms,
                    .view_ignored = options.sabotage.view_ignored,
                    .answers_alone = options.sabotage.answers_alone}) {
  rows_.UseMemory(options.memory);
  rows_.AnswerGuests(options.guests_read);
}

void ShardGroup::OnView(const View& view) {
  // For each worker: its pushes, the advances of the steps that they end, and a store.
  changes_max_ = view.workers.size() * (2 * size_t{job_.cluster.pushes_in_flight_max} + 1);
  replication_.OnView(view);
  rows_.Lead(replication_.leads());
  rows_.RecordChanges(replication_.leads() && replication_.has_next());
  rows_.RecordOrder({replication_.leads() ? options_.order.recorder : nullptr, options_.group});
  rows_.OnView(view, view.shards.ShardsOf(options_.group));
  MoveOutgoing();
}

void ShardGroup::OnFrame(PeerId from, const Frame& frame) {
  const MemoryFor request(
      "requests of the workers (train.batch_size, embedding_dim, model.hidden)");
  switch (static_cast<MessageKind>(frame.header.kind)) {
    case MessageKind::kReplicate:
      OnReplicate(from, frame);
      break;
    case MessageKind::kReplicateAck:
      replication_.OnAck(from, frame);
      break;
    default:
      OnRequest(from, frame);
  }
  MoveOutgoing();
}

std::vector<PeerId> ShardGroup::WaitsFor() const {
  std::vector<PeerId> all;
  if (leads()) all = rows_.WaitsFor();
  if (replication_.next() && replication_.waiting() > 0) all.push_back(*replication_.next());
  return all;
}

void ShardGroup::OnReplicate(PeerId from, const Frame& frame) {
  for (const Replication::Change& change : replication_.OnReplicate(from, frame)) {
    // A worker whose place is given up leaves only after all its pushes were replicated; only its
    // last advance may arrive after the view without it.
    if (!rows_.MakeChange(change.worker, change.request)) continue;
    if (options_.sabotage.backup_forgets) rows_.ForgetPushes();
    // The primary sends the answer.
    rows_.TakeAcks();
    rows_.TakeOutgoing();
    if (!rows_.TakeChange() && fault_.ok()) {
      fault_ = {Code::kCorruption,
                "the copy of group " + std::to_string(options_.group.value) +
                    " is not what its primary has: a change could not be made here"};
    }
  }
  replication_.Made();
}

void ShardGroup::OnTick(TimeMs now) {
  replication_.OnTick(now);
  if (options_.order.gate == nullptr || !leads() || !fault_.ok()) return;
  fault_ = options_.order.gate->OnTick(now);
}

void ShardGroup::OnRequest(PeerId from, const Frame& frame) {
  OrderGate* const gate = options_.order.gate;
  const std::optional<WorkerId> worker = rows_.WorkerOf(from);
  if (gate == nullptr || !leads() || !worker) return Serve(from, frame);
  if (!gate->Passes(from, *worker, frame)) return;
  Serve(from, frame);
  while (std::optional<OrderGate::Held> due = gate->TakeDue()) Serve(due->from, due->frame);
}

void ShardGroup::Serve(PeerId from, const Frame& frame) {
  const bool full = IsChange(static_cast<MessageKind>(frame.header.kind)) &&
                    replication_.waiting() >= changes_max_;
  if (!replication_.leads() || full) return rows_.Postpone(from, frame);
  rows_.OnRequest(from, frame);
  std::optional<Frame> change = rows_.TakeChange();
  if (change && replication_.has_next()) replication_.Append(from, *change);
  for (Outgoing& ack : rows_.TakeAcks()) {
    if (options_.sabotage.ack_early) {
      outgoing_.push_back(std::move(ack));
    } else {
      replication_.Answer(std::move(ack));
    }
  }
}

void ShardGroup::DropRows() {
  fault_ = {};
  rows_.DropRows();
  replication_.Reset();
}

void ShardGroup::Reset(Clock clock, std::unique_ptr<ShardSet> shards) {
  const bool others = shards != nullptr;
  rows_.Reset(clock, std::move(shards));
  if (others) replication_.Reset();
}

void ShardGroup::MoveOutgoing() {
  std::ranges::move(replication_.TakeOutgoing(), std::back_inserter(outgoing_));
  std::ranges::move(rows_.TakeOutgoing(), std::back_inserter(outgoing_));
}

std::vector<Outgoing> ShardGroup::TakeOutgoing() {
  MoveOutgoing();
  return std::exchange(outgoing_, {});
}

}  // namespace hdps
