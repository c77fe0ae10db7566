// Numbers changes, sends them on, and holds answers back until the changes are safe.
#include "server/groups/replication.h"

#include <glog/logging.h>

#include <algorithm>
#include <utility>

#include "common/protocol/message_frames.h"
#include "common/protocol/view.h"

namespace hdps {
namespace {

// Limit of changes that arrived before their turn; the preceding holder repeats what is dropped.
constexpr size_t kEarlyMax = 256;

}  // namespace

void Replication::OnView(const View& view) {
  view_ = view.view;
  if (view.placed != std::exchange(placed_, view.placed)) {
    // The job stands still, and every push was acknowledged. Holders that had the rows and holders
    // that get them now restart with the same number.
    last_ = acked_ = 0;
    log_.clear();
    held_.clear();
  }
  const std::vector<Member> holders = view.HoldersOf(options_.group);
  const auto self = std::ranges::find(holders, options_.self, &Member::peer);
  CHECK(self != holders.end()) << "a group that this server does not hold";
  before_ = self == holders.begin() ? std::nullopt : std::optional((self - 1)->peer);
  next_ = self + 1 == holders.end() ? std::nullopt : std::optional((self + 1)->peer);
  if (!next_) {
    log_.clear();
    acked_ = last_;
  }
  early_.clear();
  heard_before_ = false;
  SendLog();
  Release();
  if (before_) Confirm(/*again=*/true);
}

void Replication::Reset() {
  last_ = acked_ = 0;
  log_.clear();
  early_.clear();
  held_.clear();
  if (before_) Confirm(/*again=*/true);
}

void Replication::Append(PeerId worker, const Frame& request) {
  CHECK(next_);
  ++last_;
  Replicate change;
  change.number = last_;
  change.worker = worker;
  change.request = static_cast<MessageKind>(request.header.kind);
  change.envelope = request.envelope;
  if (request.sections.size() == 2) {
    change.keys = request.sections[0];
    change.values = request.sections[1];
  }
  CHECK(log_.empty() || log_.back().number + 1 == last_) << "no change is left out";
  if (log_.empty()) repeat_at_ = now_ + options_.retry_ms;
  SendChange(log_.emplace_back(std::move(change)));
}

void Replication::Answer(Outgoing answer) {
  if (last_ <= safe()) {
    outgoing_.push_back(std::move(answer));
    return;
  }
  // A repeated request gets the answer that is already waiting.
  const bool waits = std::ranges::any_of(held_, [&](const Held& held) {
    return held.answer.to == answer.to &&
           held.answer.frame.header.request_id == answer.frame.header.request_id;
  });
  if (waits) return;
  CHECK(held_.empty() || held_.back().until <= last_);
  held_.push_back({last_, std::move(answer)});
}

std::vector<Replication::Change> Replication::OnReplicate(PeerId from, const Frame& frame) {
  std::vector<Change> due;
  const bool trusted = frame.header.view == view_.value && before_ && from == *before_;
  if (!trusted && !options_.view_ignored) return due;
  heard_before_ = true;
  Replicate change;
  if (const Status status = DecodeMessage(frame, &change); !status.ok()) {
    LOG(WARNING) << "dropped a change of the group's holder before: " << status.message();
    return due;
  }
  if (change.number <= last_) {
    // The sender has not heard that this change was taken.
    if (trusted) {
      Confirm(/*again=*/false);
    } else {
      ReplicateAck ack;
      ack.number = change.number;
      Send(from, ack);
      outgoing_.back().frame.header.view = frame.header.view;
    }
    return due;
  }
  if (change.number > last_ + 1 && early_.size() >= kEarlyMax) return due;
  early_.emplace(change.number, std::move(change));
  while (!early_.empty() && early_.begin()->first == last_ + 1) {
    Replicate next = std::move(early_.extract(early_.begin()).mapped());
    Change& made = due.emplace_back();
    made.worker = next.worker;
    made.request.header.kind = static_cast<uint16_t>(next.request);
    made.request.header.view = view_.value;
    made.request.envelope = next.envelope;
    if (next.request != MessageKind::kAdvanceRequest) {
      made.request.sections = {next.keys, next.values};
    }
    ++last_;
    if (!next_) {
      acked_ = last_;
      continue;
    }
    if (log_.empty()) repeat_at_ = now_ + options_.retry_ms;
    SendChange(log_.emplace_back(std::move(next)));
  }
  return due;
}

void Replication::Made() {
  if (!next_ && before_) Confirm(/*again=*/false);
}

void Replication::OnAck(PeerId from, const Frame& frame) {
  ReplicateAck ack;
  if (!next_ || from != *next_ || frame.header.view != view_.value ||
      !DecodeMessage(frame, &ack).ok()) {
    return;
  }
  const bool news = ack.number > acked_ && ack.number <= last_;
  if (news) {
    acked_ = ack.number;
    while (!log_.empty() && log_.front().number <= acked_) log_.pop_front();
    repeat_at_ = now_ + options_.retry_ms;
    Release();
    if (before_) Confirm(/*again=*/false);
  }
  if (ack.again) SendLog();
}

void Replication::OnTick(TimeMs now) {
  now_ = std::max(now_, now);
  if (now_ < repeat_at_) return;
  while (options_.answers_alone && !held_.empty()) {
    outgoing_.push_back(std::move(held_.front().answer));
    held_.pop_front();
  }
  SendLog();
  if (before_ && !heard_before_) Confirm(/*again=*/true);
}

void Replication::SendLog() {
  repeat_at_ = now_ + options_.retry_ms;
  if (!next_) return;
  for (const Replicate& change : log_) SendChange(change);
}

void Replication::SendChange(const Replicate& change) { Send(*next_, change); }

void Replication::Confirm(bool again) {
  ReplicateAck ack;
  ack.number = safe();
  ack.again = again;
  Send(*before_, ack);
}

void Replication::Release() {
  while (!held_.empty() && held_.front().until <= safe()) {
    outgoing_.push_back(std::move(held_.front().answer));
    held_.pop_front();
  }
}

template <typename Message>
void Replication::Send(PeerId to, const Message& message) {
  Frame frame = EncodeMessage(message);
  frame.header.sender = options_.self.value;
  frame.header.view = view_.value;
  frame.header.group = static_cast<uint16_t>(options_.group.value);
  outgoing_.push_back({to, std::move(frame)});
}

std::vector<Outgoing> Replication::TakeOutgoing() { return std::exchange(outgoing_, {}); }

}  // namespace hdps
