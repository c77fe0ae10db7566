// Answers a process that has taken the place of a dead one: where the place stands, and what it was
// answered before.
#include <utility>

#include "common/protocol/message_frames.h"
#include "server/row_service.h"

namespace hdps {

void RowService::TellStand(const Call& call, Clock at) {
  AdvanceAck ack;
  ack.clock = clocks_.of(call.worker);
  ack.reached = stands_.reached(call.worker);
  ack.pushed = stands_.pushed(call.worker) + (sabotage_.stand_too_far ? 1 : 0);
  const Clock counted = at > 0 ? at : stands_.pushed(call.worker);
  if (!sabotage_.counts_forgotten) ack.counts = stands_.CountsBefore(call.worker, counted);
  ack.steps = stands_.Steps(call.worker);
  // Backups have what it tells before it is told.
  Acknowledge(call.requester, EncodeMessage(ack));
}

void RowService::KeepRows(const ParkedPull& pull, const Buffer& rows) {
  const PullRequest& request = pull.request;
  const bool whole = request.mode == PullMode::kTrain || request.mode == PullMode::kRefresh;
  if (!keeps_pulls_ || !whole || !Serves(pull.requester.peer)) return;
  if (request.clock < stands_.floor(pull.worker)) return;
  if (kept_.Has(pull.worker, request.clock, request.part)) return;
  KeptPulls::Kept kept{pull.requester.peer, pull.list, request.format, rows};
  if (request.mode == PullMode::kRefresh) {
    kept.rows =
        shards_->Read(pull.list->plan, pull.list->keys, {request.format, nullptr, kept.peer});
  } else if (sections_ != nullptr) {
    kept.rows = Buffer::CopyOf(rows.bytes());  // The memory of a worker's rows is scarce.
  }
  kept_.Keep(pull.worker, request.clock, request.part, std::move(kept));
}

bool RowService::AnswerFromKept(const ParkedPull& pull) {
  const PullRequest& request = pull.request;
  if (request.mode != PullMode::kTrain && request.mode != PullMode::kRefresh) return false;
  if (sabotage_.heir_reads_anew) return false;
  const KeptPulls::Kept* const kept =
      kept_.Find(pull.worker, request.clock, request.part, *pull.list);
  if (kept == nullptr || kept->format != request.format) return false;
  if (kept->peer == pull.requester.peer && steps_taken_up_ == 0) return false;
  ++counters_.pulls;
  PullReply reply;
  reply.min_clock = finished();
  reply.format = request.format;
  reply.tables = pull.list->tables;
  for (TableKeys& table : reply.tables) table.shard_counts.clear(), table.keys_of = 0;
  reply.rows = kept->rows;
  Reply(pull.requester, EncodeMessage(reply));
  return true;
}

bool RowService::IsTooLate(const ParkedPull& pull) const {
  const PullMode mode = pull.request.mode;
  const bool of_step = mode == PullMode::kTrain || mode == PullMode::kRefresh;
  return of_step && keeps_pulls_ && !sabotage_.heir_reads_anew &&
         pull.request.clock < combiner_.next();
}

}  // namespace hdps
