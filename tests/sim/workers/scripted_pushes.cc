// Sends the pushes of a scripted worker, and takes their acknowledgments.
#include <algorithm>
#include <iterator>
#include <span>
#include <utility>
#include <vector>

#include "common/protocol/message_frames.h"
#include "common/protocol/row_messages.h"
#include "tests/sim/scripted_worker.h"
#include "worker/exchange/push_plan.h"

namespace hdps::sim {

KeySplit ScriptedWorker::PartOf(const Step& step, uint32_t part) const {
  std::vector<uint32_t> positions[2];
  KeysOfTable tables[2];
  for (uint32_t t = 0; t < 2; ++t) {
    for (uint32_t i = 0; i < step.keys[t].size(); ++i) {
      if (i % options_.lists == part) positions[t].push_back(i);
    }
    tables[t] = {TableId{t}, ShardBy::kKey, kDims[t], step.keys[t], positions[t]};
  }
  KeySplit split;
  split.Compute(view_->shards, static_cast<uint32_t>(view_->servers.size()), tables);
  return split;
}

void ScriptedWorker::PushStep(Clock clock) {
  const Step& step = steps_.at(clock);
  // A step changes only the shared rows, its own and its fresh one.
  std::span<const float> gradients[2];
  for (uint32_t t = 0; t < 2; ++t) {
    gradients_[t].clear();
    for (const Key key : step.keys[t]) {
      const bool mine =
          t == 0 || key == OwnKey(rank_) || key == FreshKey(rank_, clock, options_.rows_leave);
      for (uint32_t j = 0; j < kDims[t]; ++j) {
        gradients_[t].push_back(mine ? -static_cast<float>(j + 1) : 0.0f);
      }
    }
    gradients[t] = gradients_[t];
  }
  if (Counts()) tally_->PushStarted(rank_, clock);
  ++clock_;
  std::vector<ServerRequest> advances = AdvanceRequests(step.split.num_servers(), clock_);
  std::vector<ServerRequest> pushes;
  for (uint32_t part = options_.lists; part-- > 0;) {
    const bool whole = options_.lists == 1;  // Then the servers know its key list.
    // That of the pull knows which rows were read, while shards stay where they are.
    const bool as_pulled = whole && step.split_in == view_->view;
    const KeySplit some = as_pulled ? KeySplit() : PartOf(step, part);
    std::ranges::move(
        PushPlan(as_pulled ? step.split : some)
            .Requests(
                {.sequence = {next_sequence_++},
                 .clock = clock,
                 .num_examples = 1,
                 .list = whole ? step.list + (options_.strange_lists ? uint64_t{1} << 40 : 0) : 0,
                 .format = options_.wire,
                 .part = part,
                 .counts = {.examples = static_cast<uint64_t>(clock_ - training_->since)}},
                gradients),
        std::back_inserter(pushes));
  }
  steps_.erase(clock);
  if (!options_.advance_early) {
    Send(Purpose::kPush, std::move(pushes), std::move(advances));
  } else {
    Send(Purpose::kPush, std::move(pushes));
    Send(Purpose::kAdvance, std::move(advances));
  }
}

void ScriptedWorker::OnPushed(const std::vector<Frame>& replies) {
  for (const Frame& frame : replies) {
    PushAck ack;
    if (!Check(DecodeMessage(frame, &ack))) return;
    if (!Check(Status(ack.code, ack.message))) return;
  }
  if (Counts()) tally_->PushAcknowledged(rank_);
  ++acknowledged_;
  FinishStep();
}

}  // namespace hdps::sim
