// Decodes requests, looks rows up, and replies.
#include "tests/worker/exchange/row_servers.h"
#include "tests/common/protocol/request_keys.h"

#include <gtest/gtest.h>

#include "common/protocol/membership_messages.h"
#include "common/protocol/message_frames.h"
#include "common/protocol/row_messages.h"
#include "common/protocol/view.h"

namespace hdps {
namespace {

std::shared_ptr<const View> ViewOf(uint32_t num_servers, uint32_t num_shards) {
  View view;
  view.view = ViewId{1};
  for (uint32_t s = 0; s < num_servers; ++s) view.servers.push_back({PeerId{10 + s}, s, ""});
  view.workers.push_back({PeerId{100}, 0, ""});
  for (uint32_t s = 0; s < num_shards; ++s) {
    view.shards.owner.push_back({s * num_servers / num_shards});
  }
  return std::make_shared<const View>(std::move(view));
}

// Calls use(table, key) for each key of a request, in order.
template <typename Request, typename Use>
void ForEachRow(const Request& request, const Use& use) {
  const auto keys = KeysByTable(request.tables, request.keys.template As<Key>());
  for (size_t t = 0; t < keys.size(); ++t) {
    for (const Key key : keys[t]) use(request.tables[t], key);
  }
}

// Returns the consecutive rows of a section as a map.
template <typename Request>
std::map<RowServers::RowKey, std::vector<float>> RowsOf(const Request& request,
                                                        const Buffer& section) {
  std::map<RowServers::RowKey, std::vector<float>> rows;
  const float* at = section.As<float>().data();
  ForEachRow(request, [&](const TableKeys& table, Key key) {
    rows[{table.table.value, key}].assign(at, at + table.row_floats);
    at += table.row_floats;
  });
  return rows;
}

template <typename Message>
Message Decoded(const ServerRequest& request) {
  Message message;
  const Status status = DecodeMessage(request.whole.value_or(request.frame), &message);
  EXPECT_TRUE(status.ok()) << status.message();
  return message;
}

}  // namespace

RowServers::RowServers(uint32_t num_servers, uint32_t num_shards, MonotonicClock& clock)
    : view_(ViewOf(num_servers, num_shards)),
      channel_([this] { channel_.OnTurn(*this, 0); }, clock, 60000) {
  channel_.OnView(view_, WorkerId{0});
  channel_.WaitForView();
}

void RowServers::Start(Ticket ticket, std::vector<ServerRequest> requests,
                       std::vector<ServerRequest> then) {
  std::vector<Frame> replies;
  const auto kind = static_cast<MessageKind>(requests.front().frame.header.kind);
  Clock clock = 0;
  if (kind == MessageKind::kPullRequest) return ServePulls(ticket, requests);
  if (kind == MessageKind::kAdvanceRequest) {
    const auto advance = Decoded<AdvanceRequest>(requests.front());
    Log(advance.asks ? "ask" : "advance", advance.clock);
    replies.assign(requests.size(), EncodeMessage(advance.asks ? stand : AdvanceAck()));
  } else if (kind == MessageKind::kStoreRequest) {
    stored.clear();
    for (const ServerRequest& request : requests) {
      const auto store = Decoded<StoreRequest>(request);
      clock = store.clock;
      stored.merge(RowsOf(store, store.rows));
      replies.push_back(EncodeMessage(StoreAck()));
    }
    for (const auto& [row, values] : stored) rows[row] = values;
    Log("store", clock);
  } else {
    uint32_t part = 0;
    std::map<RowKey, std::vector<float>> pushed;
    for (const ServerRequest& request : requests) {
      const auto push = Decoded<PushRequest>(request);
      clock = push.clock;
      ++num_pushes[request.server.value];
      part = push.part;
      pushed.merge(RowsOf(push, push.gradients));
    }
    if (std::exchange(pushed_, clock) != clock) gradients.clear();
    gradients.merge(pushed);
    EXPECT_TRUE(pushed.empty()) << "a key is in two pushes of a step";
    Log("push", clock, part);
    if (held_pulls_ && held_pulls_->push == part && !held_pulls_->replies.empty()) {
      const HeldPulls held = *std::exchange(held_pulls_, std::nullopt);
      channel_.OnReplies(held.ticket, Status(), held.replies);
    }
    {
      MutexLock lock(mutex_);
      held_.push_back({ticket, requests.size(), std::move(then)});
      num_held_max_ = std::max(num_held_max_, held_.size());
    }
    if (!hold_pushes_) AnswerPushes();
    return;
  }
  channel_.OnReplies(ticket, Status(), std::move(replies));
}

void RowServers::ServePulls(Ticket ticket, const std::vector<ServerRequest>& requests) {
  std::vector<Frame> replies;
  PullRequest pull;
  if (!requests.empty()) pull = Decoded<PullRequest>(requests.front());
  if (pull.part == 0) pulled.clear();
  for (const ServerRequest& request : requests) {
    ++num_pulls[request.server.value];
    replies.push_back(Serve(Decoded<PullRequest>(request)));
  }
  Log("pull", pull.clock, pull.part);
  if (held_pulls_ && held_pulls_->pull == pull.part && held_pulls_->replies.empty()) {
    held_pulls_->ticket = ticket;
    held_pulls_->replies = std::move(replies);
    return;
  }
  channel_.OnReplies(ticket, Status(), std::move(replies));
}

Frame RowServers::Serve(const PullRequest& pull) {
  PullReply reply;
  reply.min_clock = pull.clock;
  reply.tables = pull.tables;
  for (TableKeys& table : reply.tables) table.shard_counts.clear(), table.keys_of = 0;
  std::vector<float> values;
  ForEachRow(pull, [&](const TableKeys& table, Key key) {
    pulled[{table.table.value, key}] = pull.mode;
    std::vector<float>& row = rows[{table.table.value, key}];
    row.resize(std::max<size_t>(row.size(), table.row_floats));
    values.insert(values.end(), row.begin(), row.begin() + table.row_floats);
  });
  reply.rows = Buffer::CopyOf(std::span<const float>(values));
  return EncodeMessage(reply);
}

void RowServers::AnswerPushes(Code code) {
  std::deque<Held> held;
  {
    MutexLock lock(mutex_);
    held.swap(held_);
  }
  for (const Held& push : held) {
    PushAck ack;
    ack.code = code;
    ack.message = code == Code::kOk ? "" : "refused";
    for (const ServerRequest& request : push.then) {
      if (code == Code::kOk && request.server.value == 0) {
        Log("advance", Decoded<AdvanceRequest>(request).clock);
      }
    }
    channel_.OnReplies(push.ticket, Status(),
                       std::vector<Frame>(push.num_requests, EncodeMessage(ack)));
  }
}

void RowServers::Log(const std::string& what, Clock clock, uint32_t part) {
  MutexLock lock(mutex_);
  const std::string suffix = part == 0 ? "" : "." + std::to_string(part);
  log_.push_back(what + " " + std::to_string(clock) + suffix);
}

std::vector<std::string> RowServers::log() {
  MutexLock lock(mutex_);
  return log_;
}

size_t RowServers::num_held() {
  MutexLock lock(mutex_);
  return held_.size();
}

size_t RowServers::num_held_max() {
  MutexLock lock(mutex_);
  return num_held_max_;
}

}  // namespace hdps
