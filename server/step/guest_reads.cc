// Answers reads of callers that are no members.
#include <memory>
#include <string>
#include <utility>

#include "common/protocol/message_frames.h"
#include "common/protocol/status_messages.h"
#include "server/row_service.h"

namespace hdps {

void RowService::OnGuest(PeerId from, const Frame& frame) {
  PullRequest request;
  const bool pulls = frame.header.kind == static_cast<uint16_t>(MessageKind::kPullRequest);
  if (!pulls || !DecodeMessage(frame, &request).ok() || request.mode != PullMode::kRead) {
    ++counters_.dropped;
    return;
  }
  const auto refuse = [&](const Status& why) { RefuseUnread(from, frame, why); };
  if (!guests_read_) {
    return refuse({Code::kInvalidArgument,
                   std::string("the server reads no rows to you: ") + kReadersNeedKeys});
  }
  if (frame.header.view < view_.value) {
    return refuse({Code::kStaleView, "the members of the job have changed"});
  }
  uint64_t keys = 0;
  for (const TableKeys& table : request.tables) keys += table.num_keys;
  if (keys > kGuestKeysMax) {
    return refuse({Code::kResourceExhausted, std::to_string(keys) + " keys in one pull, at most " +
                                                 std::to_string(kGuestKeysMax) + " may be"});
  }
  auto list = std::make_shared<KeyList>();
  Result<RequestPlan> plan = PlanKeys(RowShape::kWeights, request.tables, request.keys);
  if (!plan.ok()) return refuse(plan.status());
  list->plan = *std::move(plan);
  list->tables = request.tables;
  list->keys = request.keys;
  AnswerPull({{from, frame.header.request_id}, WorkerId(), std::move(request), std::move(list)});
}

}  // namespace hdps
