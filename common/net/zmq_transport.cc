// A transport over ZeroMQ: a listener has a ROUTER, a dialer has one DEALER for each peer.
//
// On the wire a frame is one ZeroMQ message: header, envelope, then each section as a part of its
// own. The routing id of a DEALER is its CallerId. If the listener's address has a data port,
// frames travel there, encrypted under a session that was agreed on first, with a tag as one more
// part.
#include <glog/logging.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>
#include <zmq.hpp>

#include "common/net/callers.h"
#include "common/net/keys/key_folder.h"
#include "common/net/shared/shared_memory_links.h"
#include "common/net/transport.h"
#include "common/net/zmq/authenticator.h"
#include "common/net/zmq/data_sessions.h"
#include "common/net/zmq/links.h"
#include "common/net/zmq/listeners.h"
#include "common/net/zmq/parts.h"
#include "common/net/zmq/refusals.h"
#include "common/platform/monotonic_clock.h"

namespace hdps {
namespace {

constexpr int kPassedOverPerReceive = 64;  // Frames that are not handed out.
constexpr int kWaitsPerReceive = 3;
constexpr int64_t kMaintainEveryMs = 50;

// Invariant: with keys, every frame that is handed out came from the holder of an allowed key whose
// role may send it.
class ZmqTransport : public Transport {
 public:
  explicit ZmqTransport(const TransportOptions& options)
      : options_(options),
        wake_fd_(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)),
        links_(context_, options_),
        listeners_(context_, options_),
        callers_(options.self.peer),
        shared_links_(options.self.peer, options.shared_bytes_per_peer) {
    PCHECK(wake_fd_ >= 0) << "eventfd";
    if (options_.keys) authenticator_.emplace(context_);
  }
  ~ZmqTransport() override { close(wake_fd_); }

  Result<std::string> Listen(const std::string& text) override { return listeners_.Listen(text); }
  Status Connect(PeerId peer, const std::string& text) override {
    return links_.Connect(peer, text);
  }
  void HangUp(PeerId peer) override {
    links_.HangUp(peer);
    // A frame to a process that had just died may have offered memory to it again.
    shared_links_.Forget(peer);
  }

  void Send(PeerId to, Frame frame) override {
    const std::vector<SharedBlock> blocks = shared_links_.Place(to, &frame);
    SendControl();
    if (!SendFrame(to, frame, blocks)) {
      shared_links_.TakeBack(to, blocks);
      ++counters_.frames_dropped;
      return;
    }
    ++counters_.frames_sent;
    counters_.bytes_sent += sizeof(FrameHeader) + frame.header.body_bytes;
    for (const SharedBlock& block : blocks) counters_.bytes_shared += block.bytes;
  }

  bool Receive(int64_t timeout_ms, PeerId* from, Frame* frame) override {
    listeners_.EndService(*clock_);
    Maintain();
    if (TakeFromAny(from, frame)) return true;
    if (timeout_ms <= 0) return false;
    // Control frames between transports do not end the wait, but a peer that sends more of them
    // than any transport does must not stall the caller.
    const int64_t until = now_ms_ + timeout_ms;
    int64_t left = timeout_ms;
    for (int waits = 0; waits < kWaitsPerReceive;) {
      const uint64_t heard = controls_heard_;
      const Waited waited = Wait(left);
      if (TakeFromAny(from, frame)) return true;
      if (waited == Waited::kWoken) return false;
      if (controls_heard_ != heard) ++waits;
      Maintain();  // Maintain() is due more often than the caller may know.
      left = until - now_ms_;
      if (left <= 0) return false;
    }
    return false;
  }

  void Wake() override {
    const uint64_t one = 1;
    // Fails only if the counter is full, and then the loop is awake already.
    [[maybe_unused]] const ssize_t written = write(wake_fd_, &one, sizeof(one));
  }

  SectionAllocator* sections() override { return shared_links_.sections(); }
  TransportCounters counters() const override {
    TransportCounters counters = counters_;
    if (options_.keys) counters.handshakes_failed = listeners_.handshakes().failed;
    counters.ended = listeners_.limits().ended();
    if (authenticator_) {
      counters.connections_admitted = authenticator_->num_admitted();
      counters.connections_refused = authenticator_->num_refused();
    }
    return counters;
  }

 private:
  enum class Taken { kNothing, kFrame, kControl, kRefused };
  enum class Waited { kNothing, kSomething, kWoken };
  struct Sender {
    PeerId peer;
    std::string key;      // Public; empty without keys.
    std::string own_key;  // Our public key that the sender was shown when it dialed us.
  };

  void Maintain() {
    now_ms_ = clock_->NowMs();
    if (now_ms_ < maintained_ms_ + kMaintainEveryMs) return;
    maintained_ms_ = now_ms_;
    if (options_.keys) MaintainKeys(now_ms_);
    listeners_.Maintain(now_ms_);
  }

  // Answers the authenticator's questions, and acts on changes in the folder of keys.
  void MaintainKeys(int64_t now) {
    const CurveKeys before = options_.keys->ring().own;
    if (options_.keys->Refresh(now)) {
      links_.OnNewKeys(before, now);
      listeners_.OnNewKeys(*authenticator_, now);
      sessions_.OnNewKeys(options_.keys->ring());
    }
    authenticator_->AnswerAll(options_.keys->ring());
    links_.Maintain(now);
  }

  // Sends control frames of the shared-memory links. Lost ones are sent again when they matter.
  void SendControl() {
    for (Outgoing& control : shared_links_.TakeOutgoing()) {
      if (!SendFrame(control.to, control.frame, {})) shared_links_.Unsent(control);
    }
  }

  bool SendFrame(PeerId to, Frame& frame, const std::vector<SharedBlock>& blocks) {
    frame.header.sender = options_.self.peer.value;
    Links::Link* const link = links_.To(to);
    const CallerId* const id = link == nullptr ? callers_.Find(to) : nullptr;
    if (link == nullptr && id == nullptr) return false;
    DataSessions::Session* const session = id != nullptr ? sessions_.Find(*id) : nullptr;
    const bool data = session != nullptr || (link != nullptr && link->data != nullptr);
    ChecksumFrame(frame, data ? BodyCheck::kAuthTag : BodyCheck::kChecksum);
    if (session != nullptr) return listeners_.SendInSession(*session, frame, blocks);
    if (data) return link->data->Send(frame, blocks);
    if (link != nullptr) return SendParts(link->connection.socket(), nullptr, frame, blocks);
    return listeners_.SendToCaller(*id, frame, blocks);
  }

  // Tries every socket once, beginning after the one that was served last.
  bool TakeFromAny(PeerId* from, Frame* frame) {
    const size_t num_sockets = listeners_.size() + 2 * links_.size();
    int passed_over = 0;
    for (size_t i = 0; i < num_sockets; ++i) {
      const size_t socket = (last_served_ + 1 + i) % num_sockets;
      Taken taken = Taken::kRefused;
      while (taken != Taken::kFrame && taken != Taken::kNothing &&
             passed_over < kPassedOverPerReceive) {
        taken = TakeFrom(socket, from, frame);
        if (taken != Taken::kNothing) SendControl();
        if (taken != Taken::kFrame) ++passed_over;
      }
      if (taken == Taken::kNothing) continue;
      last_served_ = socket;
      return taken == Taken::kFrame;
    }
    return false;
  }

  Taken TakeFrom(size_t index, PeerId* from, Frame* frame) {
    listeners_.EndService(*clock_);
    const size_t dialed = listeners_.size() + links_.size();
    if (index >= dialed) return TakeFromDataLink(links_[index - dialed], from, frame);
    std::vector<zmq::message_t> parts;
    if (index >= listeners_.size()) {
      Links::Link& link = links_[index - listeners_.size()];
      *from = link.peer;
      if (!ReceiveParts(link.connection.socket(), &parts)) return Taken::kNothing;
      return TakeParts(parts, 0, {link.peer, link.listener_key, ""}, frame);
    }
    const int64_t began_ns = listeners_.has_keys(index) ? clock_->NowNs() : 0;
    if (listeners_.Rests(index, began_ns)) return Taken::kNothing;
    Arrival arrival{listeners_.has_keys(index)};
    if (!ReceiveParts(listeners_[index], &parts, &arrival)) return Taken::kNothing;
    if (IsOfGuest(KeyOf(parts.back()))) listeners_.BeginService(index, began_ns);
    const Taken taken = listeners_.data(index) ? TakeFromDataPort(index, parts, from, frame)
                                               : TakeFromCaller(index, parts, from, frame);
    listeners_.OnMessage(arrival, taken == Taken::kRefused);
    return taken;
  }

  Taken TakeFromCaller(size_t index, std::vector<zmq::message_t>& parts, PeerId* from,
                       Frame* frame) {
    const auto caller = ParseCallerId({parts[0].data<char>(), parts[0].size()});
    *from = caller ? caller->peer : PeerId();
    // A polled ROUTER produces the routing id by itself, without the key of the connection, so the
    // key is read from the last part.
    const Sender sender{*from, KeyOf(parts.back()), listeners_.own_key(index)};
    if (!caller) return Refuse(sender, WhyNoCaller(parts));
    const Status heard = Hear(*caller);
    return heard.ok() ? TakeParts(parts, 1, sender, frame) : Refuse(sender, heard.message());
  }

  Status Hear(const CallerId& caller) {
    if (links_.To(caller.peer) == nullptr) return callers_.Hear(caller);
    return Status(Code::kInvalidArgument, "it is heard where it was dialed");
  }

  // Takes a message from one of our data ports.
  Taken TakeFromDataPort(size_t index, std::vector<zmq::message_t>& parts, PeerId* from,
                         Frame* frame) {
    bool authentic = false;
    const DataSessions::Session* const session =
        sessions_.Decrypt(listeners_.number(index), &parts, &authentic);
    if (session == nullptr) return Refuse({}, "at the port for data it shows no session there is");
    *from = session->caller.peer;
    const Sender sender{*from, session->key, session->own_key};
    if (!authentic) return Refuse(sender, kBadAuthTag);
    const Status heard = Hear(session->caller);
    return heard.ok() ? TakeParts(parts, 0, sender, frame, BodyCheck::kAuthTag)
                      : Refuse(sender, heard.message());
  }

  // Takes a message from the data port that `link` dialed.
  Taken TakeFromDataLink(Links::Link& link, PeerId* from, Frame* frame) {
    std::vector<zmq::message_t> parts;
    if (!link.data || !link.data->has_session()) return Taken::kNothing;
    if (!ReceiveParts(link.data->socket(), &parts)) return Taken::kNothing;
    *from = link.peer;
    const Sender sender{link.peer, link.listener_key, ""};
    return link.data->Decrypt(&parts) ? TakeParts(parts, 0, sender, frame, BodyCheck::kAuthTag)
                                      : Refuse(sender, kBadAuthTag);
  }

  // `first` is the index of the part with the header.
  Taken TakeParts(std::vector<zmq::message_t>& parts, size_t first, const Sender& sender,
                  Frame* frame, BodyCheck body = BodyCheck::kChecksum) {
    const Status read = ReadFrame(
        parts, first, [&](const Buffer& block) { return shared_links_.Take(sender.peer, block); },
        frame);
    if (!read.ok()) return Refuse(sender, read.message());
    if (const Status status = CheckFrame(*frame, body); !status.ok()) {
      return Refuse(sender, status.message());
    }
    if (frame->header.sender != sender.peer.value) {
      return Refuse(sender, "the frame names another sender than its connection");
    }
    if (const Status may = MaySend(sender, *frame); !may.ok()) {
      return Refuse(sender, may.message());
    }
    if (IsSessionFrame(frame->header)) return OnSession(sender, *frame, body);
    if (SharedMemoryLinks::IsControl(frame->header)) {
      shared_links_.OnControl(sender.peer, *frame);
      ++controls_heard_;
      return Taken::kControl;
    }
    ++counters_.frames_received;
    counters_.bytes_received += sizeof(FrameHeader) + frame->header.body_bytes;
    return Taken::kFrame;
  }

  // Handles frames that set up sessions over CURVE: requests where we listen, answers where we
  // dialed.
  Taken OnSession(const Sender& sender, const Frame& frame, BodyCheck body) {
    Links::Link* const link = links_.To(sender.peer);
    const bool expected = IsSessionRequest(frame.header)
                              ? link == nullptr && options_.data_port && !IsOfGuest(sender.key)
                              : link != nullptr && link->data != nullptr;
    if (!expected || body == BodyCheck::kAuthTag) {
      return Refuse(sender, "it speaks of a session for data, which there is none of here");
    }
    ++controls_heard_;
    if (link != nullptr) {
      counters_.frames_dropped += links_.OnSessionAnswer(*link, frame);
      WipeGrant(frame);
      return Taken::kControl;
    }
    const CallerId caller = *callers_.Find(sender.peer);
    std::optional<CallerId> ended;
    const SessionGrant& grant =
        sessions_.Grant(caller, sender.key, sender.own_key, AeadFor(frame), &ended);
    AnswerSession(caller, SessionGrantFrame(grant));
    if (ended) AnswerSession(*ended, SessionEndedFrame());
    return Taken::kControl;
  }

  // A lost answer is requested again by the connection that replaces the one it was lost with.
  void AnswerSession(const CallerId& caller, Frame frame) {
    frame.header.sender = options_.self.peer.value;
    ChecksumFrame(frame);
    listeners_.SendToCaller(caller, frame, {});
  }

  bool IsOfGuest(const std::string& key) const {
    const AllowedKey* const known = options_.keys ? options_.keys->ring().Find(key) : nullptr;
    return known != nullptr && IsGuest(known->role);
  }

  Status MaySend(const Sender& sender, const Frame& frame) {
    if (!options_.keys) return {};
    const AllowedKey* key = options_.keys->ring().Find(sender.key);
    if (key == nullptr || key->revoked) {
      return Status(Code::kInvalidArgument, "its key is not allowed any more");
    }
    if (!callers_.KeepsRole(sender.peer, key->role)) {
      return Status(Code::kInvalidArgument, "its number is that of a key of another role");
    }
    const bool ours = SharedMemoryLinks::IsControl(frame.header) || IsSessionFrame(frame.header);
    if (ours || !options_.may_send) return {};
    return options_.may_send(key->role, frame);
  }

  Taken Refuse(const Sender& sender, const std::string& why) {
    ++counters_.frames_refused;
    refusals_.Tell(sender.peer, options_.keys ? options_.keys->ring().Find(sender.key) : nullptr,
                   why);
    return Taken::kRefused;
  }

  Waited Wait(int64_t timeout_ms) {
    std::vector<zmq_pollitem_t> items;
    items.push_back({nullptr, wake_fd_, ZMQ_POLLIN, 0});
    if (authenticator_) {
      items.push_back({authenticator_->socket().handle(), 0, ZMQ_POLLIN, 0});
    }
    if (options_.keys || listeners_.limits().size() > 0) {
      timeout_ms = std::min(timeout_ms, kMaintainEveryMs);
    }
    const size_t first_router = items.size();
    timeout_ms = std::min(timeout_ms, listeners_.AddTo(&items, clock_->NowNs()));
    for (size_t i = 0; i < links_.size(); ++i) {
      items.push_back({links_[i].connection.socket().handle(), 0, ZMQ_POLLIN, 0});
      if (links_[i].data == nullptr || !links_[i].data->has_session()) continue;
      items.push_back({links_[i].data->socket().handle(), 0, ZMQ_POLLIN, 0});
    }
    const size_t first_watch = items.size();
    for (const int watch : shared_links_.Watches())
      items.push_back({nullptr, watch, ZMQ_POLLIN, 0});
    const int happened = zmq_poll(items.data(), static_cast<int>(items.size()), timeout_ms);
    for (size_t i = first_watch; i < items.size(); ++i) {
      if (items[i].revents != 0) shared_links_.ForgetEnded(items[i].fd);
    }
    for (size_t i = 0; i < listeners_.size(); ++i) {
      if (items[first_router + 2 * i + 1].revents == 0) continue;
      listeners_.TakeEvents();  // Takes the events of all listeners.
      break;
    }
    if (authenticator_ && items[first_router - 1].revents != 0) {
      authenticator_->AnswerAll(options_.keys->ring());
    }
    if ((items[0].revents & ZMQ_POLLIN) == 0) {
      return happened > 0 ? Waited::kSomething : Waited::kNothing;
    }
    uint64_t wakes = 0;
    [[maybe_unused]] const ssize_t got = read(wake_fd_, &wakes, sizeof(wakes));
    return Waited::kWoken;
  }

  const TransportOptions options_;
  const int wake_fd_;
  zmq::context_t context_;  // Before the sockets: its destructor waits for them.
  // Only with keys. It must exist before the listeners, which would accept everybody without it.
  std::optional<Authenticator> authenticator_;
  Links links_;
  Listeners listeners_;
  DataSessions sessions_;
  Callers callers_;
  SharedMemoryLinks shared_links_;
  size_t last_served_ = 0;
  uint64_t controls_heard_ = 0;
  const std::unique_ptr<MonotonicClock> clock_ = NewSystemClock();
  int64_t now_ms_ = 0, maintained_ms_ = 0;  // As of the last Receive().
  Refusals refusals_;
  TransportCounters counters_;
};

}  // namespace

std::unique_ptr<Transport> NewZmqTransport(const TransportOptions& options) {
  return std::make_unique<ZmqTransport>(options);
}

}  // namespace hdps
