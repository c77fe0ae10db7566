// Takes acknowledgements in the order of the pushes.
#include "worker/exchange/push_acks.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "common/platform/failpoint.h"
#include "common/protocol/message_frames.h"
#include "common/protocol/row_messages.h"
#include "common/protocol/view.h"
#include "worker/exchange/push_plan.h"

namespace hdps {
namespace {

// Returns whether a server left the gradients out; the others may have taken theirs.
Result<bool> WasLeftOut(const std::vector<Frame>& replies) {
  bool left_out = false;
  for (const Frame& reply : replies) {
    PushAck ack;
    HDPS_RETURN_IF_ERROR(DecodeMessage(reply, &ack));
    if (ack.code != Code::kOk) return Status(ack.code, ack.message);
    left_out = left_out || ack.too_old;
  }
  return left_out;
}

}  // namespace

Status PushAcks::Collect(size_t left) {
  while (!pushes_.empty() && (pushes_.size() > left || channel_.Ready(pushes_.front().ticket))) {
    const SentPush push = pushes_.front();
    pushes_.pop_front();
    int64_t arrived_ns = push.sent_ns;
    HDPS_ASSIGN_OR_RETURN(const std::vector<Frame> replies,
                          channel_.Wait(push.ticket, &arrived_ns));
    channel_.meters()->Observe(FigureNamed("hdps_worker_push_seconds"), arrived_ns - push.sent_ns);
    HDPS_ASSIGN_OR_RETURN(const bool left_out, WasLeftOut(replies));
    if (left_out) {
      channel_.meters()->Add(FigureNamed("hdps_worker_dropped_steps_total"), 1);
      channel_.meters()->Add(FigureNamed("hdps_worker_dropped_examples_total"), push.examples);
    }
    HDPS_FAILPOINT("worker.step.acked");
  }
  return Status();
}

Result<PlaceStand> AskStand(NodeChannel& channel, Clock counted) {
  const auto num_servers = static_cast<uint32_t>(channel.view()->servers.size());
  std::vector<ServerRequest> questions;
  for (uint32_t s = 0; s < num_servers; ++s) {
    const AdvanceRequest question{.clock = counted, .asks = true};
    questions.push_back({ServerId{s}, EncodeMessage(question)});
  }
  HDPS_ASSIGN_OR_RETURN(const std::vector<Frame> replies, channel.Call(std::move(questions)));
  std::optional<PlaceStand> stand;
  Clock reached = 0;
  std::optional<Clock> announced;
  std::map<Clock, std::vector<PartitionSpan>> messages;
  for (const Frame& frame : replies) {
    AdvanceAck ack;
    HDPS_RETURN_IF_ERROR(DecodeMessage(frame, &ack));
    reached = std::max(reached, ack.reached);
    announced = std::min(announced.value_or(ack.clock), ack.clock);
    if (!stand || ack.pushed < stand->clock) {
      stand = {.clock = ack.pushed, .counts = ack.counts};
    }
    for (TopicStep& step : ack.steps) messages.try_emplace(step.clock, std::move(step.messages));
  }
  if (!stand) return Status(Code::kInvalidArgument, "there is no server to ask");
  stand->reached = std::max(reached, stand->clock);
  stand->announced = *announced;
  stand->messages = std::move(messages);
  return *stand;
}

Status AnnounceStand(NodeChannel& channel, const PlaceStand& stand, bool clips_all,
                     const std::function<void(Clock)>& announced) {
  HDPS_FAILPOINT("worker.stand.known");
  const auto num_servers = static_cast<uint32_t>(channel.view()->servers.size());
  if (!clips_all) {
    HDPS_RETURN_IF_ERROR(channel.Call(AdvanceRequests(num_servers, stand.clock)).status());
    announced(stand.clock);
    return {};
  }
  for (Clock step = stand.announced; step < stand.clock; ++step) {
    const Ticket asked = channel.Start(SquaresRequests(num_servers, step));
    HDPS_ASSIGN_OR_RETURN(const SquareSum squares, AwaitSquares(channel, asked));
    HDPS_RETURN_IF_ERROR(channel.Call(AdvanceRequests(num_servers, step + 1, squares)).status());
    announced(step + 1);
  }
  return {};
}

Result<SquareSum> AwaitSquares(NodeChannel& channel, Ticket asked) {
  HDPS_ASSIGN_OR_RETURN(const std::vector<Frame> replies, channel.Wait(asked));
  SquareSum squares;
  for (const Frame& frame : replies) {
    SquaresReply reply;
    HDPS_RETURN_IF_ERROR(DecodeMessage(frame, &reply));
    if (reply.code != Code::kOk) return Status(reply.code, reply.message);
    squares.Add(reply.squares);
  }
  return squares;
}

}  // namespace hdps
