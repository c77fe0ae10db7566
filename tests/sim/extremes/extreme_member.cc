// Sends one extreme message.
#include "tests/sim/extremes/extreme_member.h"

#include <algorithm>
#include <utility>

namespace hdps::sim {
namespace {

// Is true for messages that each worker sends repeatedly; the next one is normal again.
bool IsItsOwn(MessageKind kind) {
  constexpr MessageKind kOwn[] = {MessageKind::kHeartbeat, MessageKind::kCommandDone,
                                  MessageKind::kPullRequest, MessageKind::kPushRequest,
                                  MessageKind::kAdvanceRequest};
  return std::ranges::count(kOwn, kind) > 0;
}

}  // namespace

ExtremeMember::ExtremeMember(SimNetwork* network, const ExtremeMessages& messages,
                             const Extreme& extreme, PeerId worker, std::vector<PeerId> to,
                             uint32_t nth)
    : network_(*network),
      messages_(messages),
      extreme_(extreme),
      worker_(worker),
      to_(std::move(to)),
      left_(nth) {
  network_.OnSend([this](PeerId from, PeerId, Frame* frame) { See(from, frame); });
}

void ExtremeMember::See(PeerId from, Frame* frame) {
  const auto kind = static_cast<MessageKind>(frame->header.kind);
  Frame& seen = seen_[frame->header.kind];
  if (from == worker_ || seen.header.sender != worker_.value) seen = *frame;
  const MessageKind at = IsItsOwn(extreme_.kind) ? extreme_.kind : MessageKind::kHeartbeat;
  if (sent_ || from != worker_ || kind != at || --left_ > 0) return;
  sent_ = true;
  if (at == extreme_.kind) {
    frame->envelope = messages_.Apply(extreme_, frame->envelope);
    return;
  }
  const auto like = seen_.find(static_cast<uint16_t>(extreme_.kind));
  Frame beside = like == seen_.end() ? Frame() : like->second;
  beside.header.kind = static_cast<uint16_t>(extreme_.kind);
  beside.header.view = frame->header.view;
  beside.envelope = messages_.Apply(extreme_, beside.envelope);
  for (const PeerId to : to_) network_.Inject(worker_, to, beside);
}

}  // namespace hdps::sim
