// Reads and stores rows by a split, its requests and their replies.
#include "worker/exchange/row_transfer.h"

#include <vector>

#include "common/protocol/message_frames.h"
#include "common/protocol/row_messages.h"
#include "common/protocol/view.h"
#include "worker/exchange/pull_plan.h"
#include "worker/exchange/push_plan.h"

namespace hdps {
namespace {

KeySplit SplitByView(const View& view, std::span<const KeysOfTable> tables) {
  KeySplit split;
  split.Compute(view.shards, static_cast<uint32_t>(view.servers.size()), tables);
  return split;
}

}  // namespace

Status ReadRows(NodeChannel& channel, std::span<const KeysOfTable> tables, Clock clock,
                PullMode mode, std::span<const std::span<float>> rows) {
  const KeySplit split = SplitByView(*channel.view(), tables);
  PullPlan plan;
  HDPS_ASSIGN_OR_RETURN(const std::vector<Frame> replies,
                        channel.Call(plan.Pull(split, {.clock = clock, .mode = mode})));
  for (size_t i = 0; i < replies.size(); ++i) {
    PullReply reply;
    HDPS_RETURN_IF_ERROR(DecodeMessage(replies[i], &reply));
    HDPS_RETURN_IF_ERROR(plan.Scatter(i, reply, rows));
  }
  return Status();
}

Status StoreRows(NodeChannel& channel, std::span<const KeysOfTable> tables, Clock clock,
                 std::span<const std::span<const float>> rows) {
  const KeySplit split = SplitByView(*channel.view(), tables);
  HDPS_ASSIGN_OR_RETURN(const std::vector<Frame> replies,
                        channel.Call(StoreRequests(split, channel.NextStore(), clock, rows)));
  for (const Frame& reply : replies) {
    StoreAck ack;
    HDPS_RETURN_IF_ERROR(DecodeMessage(reply, &ack));
    if (ack.code != Code::kOk) return Status(ack.code, ack.message);
  }
  return Status();
}

}  // namespace hdps
