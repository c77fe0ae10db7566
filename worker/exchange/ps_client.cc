// Keeps each request until its reply has come.
#include "worker/exchange/ps_client.h"

#include <glog/logging.h>

#include <algorithm>
#include <string>
#include <utility>

#include "common/protocol/membership_messages.h"
#include "common/protocol/message_frames.h"
#include "common/protocol/row_messages.h"
#include "common/protocol/view.h"
#include "common/telemetry/span_recorder.h"

namespace hdps {
namespace {

constexpr TimeMs kRepeatGrowthMax = 8;  // Bounds the repeats to a slow server.
// First delay after a reply that says "not ready"; doubles with each such reply.
constexpr TimeMs kPostponedMsMin = 10;
// Tickets from here on belong to this class: requests whose replies are not reported.
constexpr uint64_t kOwnTickets = uint64_t{1} << 63;

MessageKind KindOf(const Frame& frame) { return static_cast<MessageKind>(frame.header.kind); }

bool IsReply(MessageKind kind) {
  return kind == MessageKind::kPullReply || kind == MessageKind::kPushAck ||
         kind == MessageKind::kAdvanceAck || kind == MessageKind::kStoreAck ||
         kind == MessageKind::kSquaresReply;
}

constexpr bool IsNext(MessageKind reply, MessageKind request) {
  return static_cast<int>(reply) == static_cast<int>(request) + 1;
}
static_assert(IsNext(MessageKind::kPullReply, MessageKind::kPullRequest));
static_assert(IsNext(MessageKind::kPushAck, MessageKind::kPushRequest));
static_assert(IsNext(MessageKind::kAdvanceAck, MessageKind::kAdvanceRequest));
static_assert(IsNext(MessageKind::kStoreAck, MessageKind::kStoreRequest));
static_assert(IsNext(MessageKind::kSquaresReply, MessageKind::kSquaresRequest));

bool Answers(MessageKind reply, MessageKind request) {
  return IsReply(reply) && IsNext(reply, request);
}

template <typename Reply>
Result<Code> DecodeCode(const Frame& frame) {
  Reply reply;
  HDPS_RETURN_IF_ERROR(DecodeMessage(frame, &reply));
  return reply.code;
}

// Returns the code of a server's reply, or an error if the reply is malformed.
Result<Code> CodeOfReply(const Frame& frame) {
  switch (KindOf(frame)) {
    case MessageKind::kPullReply:
      return DecodeCode<PullReply>(frame);
    case MessageKind::kPushAck:
      return DecodeCode<PushAck>(frame);
    case MessageKind::kStoreAck:
      return DecodeCode<StoreAck>(frame);
    case MessageKind::kSquaresReply:
      return DecodeCode<SquaresReply>(frame);
    default: {
      AdvanceAck ack;
      HDPS_RETURN_IF_ERROR(DecodeMessage(frame, &ack));
      return Code::kOk;
    }
  }
}

}  // namespace

PsClient::PsClient(const PsClientOptions& options)
    : options_(options), next_own_ticket_(kOwnTickets) {
  CHECK_GT(options_.pushes_in_flight_max, 0u);
}

void PsClient::Start(Ticket ticket, std::vector<ServerRequest> requests,
                     std::vector<ServerRequest> then) {
  CHECK(view_ != nullptr) << "a request before the cluster has formed";
  CHECK(tickets_.count(ticket) == 0) << "ticket " << ticket.value << " is in use";
  if (requests_.size() + requests.size() > options_.requests_max) {
    results_.push_back(
        {ticket,
         Status(Code::kResourceExhausted,
                std::to_string(requests_.size()) + " requests wait for servers and " +
                    std::to_string(requests.size()) + " more were asked for; at most " +
                    std::to_string(options_.requests_max) + " may"),
         {}});
    return;
  }
  for (const ServerRequest& request : requests) {
    if (request.server.value < view_->servers.size()) continue;
    results_.push_back({ticket, StaleSplit(), {}});
    return;
  }
  const auto is_push = [](const ServerRequest& request) {
    return KindOf(request.frame) == MessageKind::kPushRequest;
  };
  if (!then.empty() || std::ranges::any_of(requests, is_push)) {
    sequels_.push_back({ticket, false, std::move(then)});
  }
  if (requests.empty()) return FinishTicket(ticket, OpenTicket());
  OpenTicket& open = tickets_[ticket];
  open.missing = requests.size();
  open.replies.resize(requests.size());
  for (size_t i = 0; i < requests.size(); ++i) {
    const ServerId server = requests[i].server;
    const uint64_t id = next_request_id_++;
    open.request_ids.push_back(id);
    Request& request = requests_[id];
    request.ticket = ticket;
    request.position = i;
    request.server = server;
    request.frame = std::move(requests[i].frame);
    request.whole = std::move(requests[i].whole);
    request.step = requests[i].step;
    request.started = now_;
    request.deadline = now_ + TimeMs{1000} * options_.request_timeout_s;
    request.repeat_ms = options_.request_retry_ms;
    ++counters_.requests;
    if (KindOf(request.frame) == MessageKind::kPushRequest) {
      counters_.gradient_bytes += request.frame.sections.back().size();
      pushes_[server.value].push_back({id, false});
      if (!MayPush(id, server)) continue;
    }
    Send(id, &request);
  }
}

void PsClient::Send(uint64_t id, Request* request) {
  Frame frame = request->frame;  // The copy shares the bytes.
  frame.header.sender = options_.self.value;
  frame.header.view = view_->view.value;
  frame.header.request_id = id;
  frame.header.group = static_cast<uint16_t>(request->server.value);
  outgoing_.push_back({view_->servers[request->server.value].peer, std::move(frame)});
  SpanRecorder* const recorder = options_.recorder;
  if (request->sends == 0 && recorder != nullptr && recorder->Records(request->step)) {
    request->sent_ns = recorder->NowNs();
  }
  if (request->sends++ > 0) ++counters_.repeats;
  request->repeat_at = now_ + request->repeat_ms;
  request->repeat_ms =
      std::min(request->repeat_ms * 2, kRepeatGrowthMax * TimeMs{options_.request_retry_ms});
}

bool PsClient::MayPush(uint64_t id, ServerId server) const {
  const std::deque<Push>& window = pushes_[server.value];
  for (size_t i = 0; i < window.size() && i < options_.pushes_in_flight_max; ++i) {
    if (window[i].request_id == id) return true;
  }
  return false;
}

void PsClient::ClosePush(uint64_t id, ServerId server) {
  std::deque<Push>& window = pushes_[server.value];
  for (Push& push : window) {
    if (push.request_id == id) push.acknowledged = true;
  }
  while (!window.empty() && window.front().acknowledged) window.pop_front();
  for (size_t i = 0; i < window.size() && i < options_.pushes_in_flight_max; ++i) {
    const auto at = requests_.find(window[i].request_id);
    if (at != requests_.end() && at->second.sends == 0) Send(at->first, &at->second);
  }
}

void PsClient::OnView(std::shared_ptr<const View> view) {
  view_ = std::move(view);
  pushes_.resize(std::max(pushes_.size(), view_->servers.size()));
  links_.clear();
  for (const Member& server : view_->servers) links_[server.peer] = {now_, now_};
  std::vector<Ticket> homeless;
  for (auto& [id, request] : requests_) {
    if (request.server.value >= view_->servers.size()) {
      homeless.push_back(request.ticket);
      continue;
    }
    if (request.sends == 0) continue;  // Waits for its place in the window.
    request.repeat_ms = options_.request_retry_ms;
    Send(id, &request);
  }
  for (const Ticket ticket : homeless) {
    FailTicket(ticket, StaleSplit());
  }
}

bool PsClient::OnFrame(PeerId from, const Frame& frame) {
  const bool is_probe_ack = KindOf(frame) == MessageKind::kProbeAck;
  if (!is_probe_ack && !IsReply(KindOf(frame))) return false;
  if (const auto link = links_.find(from); link != links_.end()) {
    link->second.heard = now_;
    link->second.dialed_anew = false;
  }
  if (is_probe_ack) return true;
  const uint64_t id = frame.header.request_id;
  const auto at = requests_.find(id);
  if (at == requests_.end() || !Answers(KindOf(frame), KindOf(at->second.frame)) ||
      from != view_->servers[at->second.server.value].peer) {
    ++counters_.replies_ignored;
    return true;
  }
  const Result<Code> code = CodeOfReply(frame);
  if (!code.ok()) {  // The repeat will bring another copy.
    ++counters_.replies_ignored;
    LOG(WARNING) << "reply of server " << at->second.server.value
                 << " dropped: " << code.status().message();
    return true;
  }
  if (*code == Code::kStaleView || *code == Code::kUnavailable) {
    Postpone(*code, &at->second);
    return true;
  }
  if (*code == Code::kNotFound && (at->second.whole.has_value() || at->second.is_whole)) {
    if (at->second.is_whole) return true;  // This answers a repeat of the frame without keys.
    ++counters_.lists_unknown;
    at->second.frame = *std::exchange(at->second.whole, std::nullopt);
    at->second.is_whole = true;
    Send(id, &at->second);
    return true;
  }
  ++counters_.replies;
  if (at->second.sent_ns != 0) RecordAnswer(id, at->second);
  const Request request = std::move(at->second);
  requests_.erase(at);
  if (KindOf(request.frame) == MessageKind::kPushRequest) ClosePush(id, request.server);
  if (KindOf(frame) == MessageKind::kPullReply) {
    counters_.row_bytes += frame.sections.front().size();
  }
  OpenTicket& open = tickets_.at(request.ticket);
  open.replies[request.position] = frame;
  open.all_ok = open.all_ok && *code == Code::kOk;
  if (--open.missing == 0)
    FinishTicket(request.ticket, std::move(tickets_.extract(request.ticket).mapped()));
  return true;
}

void PsClient::RecordAnswer(uint64_t id, const Request& request) {
  const bool pulls = KindOf(request.frame) == MessageKind::kPullRequest;
  const std::string what = pulls ? "pull" : "push";
  options_.recorder->Add(what + ", server " + std::to_string(request.server.value), what,
                         request.sent_ns, options_.recorder->NowNs(),
                         {request.step, RequestLink(options_.self, id), /*serves=*/false});
}

// Delays a request that the server cannot serve yet: it is sent again later, or in the next view.
void PsClient::Postpone(Code code, Request* request) {
  ++counters_.postponed;
  const TimeMs longest = options_.request_retry_ms;
  const TimeMs next = std::max(kPostponedMsMin, 2 * request->postponed_ms);
  request->postponed_ms = code == Code::kUnavailable ? std::min(next, longest) : longest;
  request->repeat_ms = options_.request_retry_ms;
  request->repeat_at = now_ + request->postponed_ms;
}

void PsClient::FinishTicket(Ticket ticket, OpenTicket open) {
  if (ticket.value < kOwnTickets) results_.push_back({ticket, Status(), std::move(open.replies)});
  for (Sequel& sequel : sequels_) {
    if (sequel.after == ticket) sequel.due = open.all_ok;
  }
  StartSequels();
}

void PsClient::StartSequels() {
  while (!sequels_.empty() && sequels_.front().due) {
    std::vector<ServerRequest> requests = std::move(sequels_.front().requests);
    sequels_.pop_front();
    if (requests.empty()) continue;
    Start(Ticket{next_own_ticket_++}, std::move(requests));
  }
}

void PsClient::ProbeSilent(TimeMs gap) {
  const TimeMs probe_ms = options_.probe_ms;
  for (auto& [server, link] : links_) {
    // The process stood still; replies may have arrived that have not been read yet.
    if (gap >= probe_ms) link.heard += gap;
    if (options_.dial_anew_ms > 0 && now_ - link.heard >= options_.dial_anew_ms &&
        !link.dialed_anew) {
      link.dialed_anew = true;
      DialAnew(server);
    }
    if (now_ - link.heard < probe_ms || now_ - link.probed < probe_ms) continue;
    link.probed = now_;
    Frame probe = EncodeMessage(Probe());
    probe.header.sender = options_.self.value;
    probe.header.view = view_->view.value;
    outgoing_.push_back({server, std::move(probe)});
  }
}

void PsClient::DialAnew(PeerId server) {
  for (const Member& member : view_->servers) {
    if (member.peer != server) continue;
    LOG(WARNING) << "server " << member.rank << " (" << member.address << ") has said nothing for "
                 << options_.dial_anew_ms << " ms: it is dialed anew";
    dials_.push_back({server, member.address, true});
  }
  for (auto& [id, request] : requests_) {
    if (request.sends == 0 || view_->servers[request.server.value].peer != server) continue;
    request.repeat_ms = options_.request_retry_ms;
    request.repeat_at = now_;
  }
}

std::vector<SilentServer> PsClient::SilentFor(TimeMs ms) const {
  std::vector<SilentServer> silent;
  for (const auto& [server, link] : links_) {
    if (now_ - link.heard > ms) silent.push_back({server, now_ - link.heard});
  }
  return silent;
}

std::vector<Awaited> PsClient::Unanswered() const {
  std::map<PeerId, TimeMs> since;
  for (const auto& [id, request] : requests_) {
    if (request.sends == 0) continue;
    const PeerId server = view_->servers[request.server.value].peer;
    TimeMs& first = since.try_emplace(server, request.started).first->second;
    first = std::min(first, request.started);
  }
  std::vector<Awaited> awaited;
  for (const auto& [server, first] : since) awaited.push_back({server, now_ - first});
  return awaited;
}

void PsClient::OnTick(TimeMs now, bool deadlines_stand) {
  const TimeMs gap = std::max(now - now_, TimeMs{0});
  now_ += gap;
  if (options_.probe_ms > 0 && view_ != nullptr) ProbeSilent(gap);
  const bool stood = options_.probe_ms > 0 && gap >= options_.probe_ms;  // Replies wait unread.
  std::vector<std::pair<Ticket, Status>> overdue;
  for (auto& [id, request] : requests_) {
    if (deadlines_stand || stood) request.deadline += gap;
    if (now_ >= request.deadline) {
      overdue.emplace_back(request.ticket, TimeoutOf(request));
    } else if (request.sends > 0 && now_ >= request.repeat_at) {
      Send(id, &request);
    }
  }
  for (const auto& [ticket, status] : overdue) FailTicket(ticket, status);
}

Status PsClient::StaleSplit() const {
  return Status(Code::kStaleView, "view " + std::to_string(view_->view.value) + " has " +
                                      std::to_string(view_->servers.size()) +
                                      " servers, fewer than the request was split for");
}

Status PsClient::TimeoutOf(const Request& request) const {
  const uint32_t rank = request.server.value;
  std::string message = "server " + std::to_string(rank) + " (" + view_->servers[rank].address +
                        ") did not answer a " + MessageKindName(KindOf(request.frame)) + " for " +
                        std::to_string((now_ - request.started) / 1000) + " s; it was sent " +
                        std::to_string(request.sends) + " times";
  return Status(Code::kTimeout, std::move(message));
}

void PsClient::FailTicket(Ticket ticket, const Status& status) {
  const auto at = tickets_.find(ticket);
  if (at == tickets_.end()) return;  // Another request of the ticket was overdue too.
  const std::vector<uint64_t> ids = std::move(at->second.request_ids);
  tickets_.erase(at);
  std::vector<std::pair<uint64_t, ServerId>> pushes;
  for (const uint64_t id : ids) {
    const auto request = requests_.find(id);
    if (request == requests_.end()) continue;
    if (KindOf(request->second.frame) == MessageKind::kPushRequest) {
      pushes.emplace_back(id, request->second.server);
    }
    requests_.erase(request);
  }
  for (const auto& [id, server] : pushes) ClosePush(id, server);
  if (ticket.value < kOwnTickets) {
    results_.push_back({ticket, status, {}});
  } else {
    LOG(WARNING) << status.message();
  }
}

void PsClient::Cancel(Ticket ticket) {
  FailTicket(ticket, Status(Code::kCancelled, "not wanted any more"));
}

void PsClient::CancelAll() {
  requests_.clear();
  tickets_.clear();
  sequels_.clear();
  for (std::deque<Push>& window : pushes_) window.clear();
  outgoing_.clear();
  results_.clear();
}

std::vector<Dial> PsClient::TakeDials() { return std::exchange(dials_, {}); }
std::vector<Outgoing> PsClient::TakeOutgoing() { return std::exchange(outgoing_, {}); }

std::vector<TicketResult> PsClient::TakeResults() { return std::exchange(results_, {}); }

}  // namespace hdps
