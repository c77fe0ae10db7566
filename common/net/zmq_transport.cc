// Frames over ZeroMQ: whoever listens has a ROUTER, whoever dials a DEALER for each peer.
//
// On the wire a frame is one ZeroMQ message: header, envelope, then each section as a part of its
// own. A DEALER's routing id is its CallerId.
#include <glog/logging.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>
#include <zmq.hpp>

#include "common/net/address.h"
#include "common/net/callers.h"
#include "common/net/listening.h"
#include "common/net/shared/shared_memory_links.h"
#include "common/net/transport.h"
#include "common/platform/random.h"

namespace hdps {
namespace {

constexpr int kLingerMs = 1000;  // How long closing waits for what is still to be sent.
constexpr int kHandshakeMs = 5000, kConnectMs = 5000;
constexpr int kReconnectMs = 50, kReconnectMaxMs = 1000;
constexpr int kBeatMs = 5000;
constexpr int kBeatTimeoutMs = 30000;      // More than the largest frame takes on a slow network.
constexpr size_t kCopyBytesMax = 4096;     // Smaller parts are copied: cheaper than sharing.
constexpr int kPassedOverPerReceive = 64;  // Frames that are not handed out.
constexpr int kWaitsPerReceive = 3;
constexpr size_t kPeersLoggedMax = 1024;
constexpr size_t kPartsMax = 2 + kFrameSectionsMax;

// Shares the bytes of a Buffer with ZeroMQ until they are sent; small ones are copied.
zmq::message_t PartOf(const Buffer& bytes) {
  if (bytes.size() < kCopyBytesMax) return zmq::message_t(bytes.data(), bytes.size());
  return zmq::message_t(
      const_cast<std::byte*>(bytes.data()), bytes.size(),
      [](void*, void* buffer) { delete static_cast<Buffer*>(buffer); }, new Buffer(bytes));
}

// Shares the bytes of a part; those that are small or stand at an odd address are copied.
Buffer BufferOf(zmq::message_t part) {
  const std::span<const std::byte> bytes(part.data<std::byte>(), part.size());
  const bool aligned = reinterpret_cast<uintptr_t>(bytes.data()) % sizeof(uint64_t) == 0;
  if (bytes.size() < kCopyBytesMax || !aligned) return Buffer::CopyOf(bytes);
  auto owner = std::make_shared<zmq::message_t>(std::move(part));
  const void* data = owner->data();
  const size_t size = owner->size();
  return Buffer(std::move(owner), data, size);
}

// ---- The transport.

// Invariant: every link dials another address, and every peer has at most one link.
class ZmqTransport : public Transport {
 public:
  explicit ZmqTransport(const TransportOptions& options)
      : options_(options),
        wake_fd_(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)),
        callers_(options.self),
        paths_(options.self, options.shared_bytes_per_peer) {
    PCHECK(wake_fd_ >= 0) << "eventfd";
  }
  ~ZmqTransport() override { close(wake_fd_); }

  Result<std::string> Listen(const std::string& text) override {
    HDPS_ASSIGN_OR_RETURN(const Address address, AddressToListenOn(text, options_.insecure));
    try {
      zmq::socket_t router = NewSocket(zmq::socket_type::router);
      // Who comes again with the same secret replaces his connection; Send() notes an unknown one.
      router.set(zmq::sockopt::router_handover, true);
      router.set(zmq::sockopt::router_mandatory, true);
      if (zmq_bind(router.handle(), address.ToString().c_str()) != 0) {
        return BindFailure(address, zmq_errno(), zmq_strerror(zmq_errno()));
      }
      const std::string bound = router.get(zmq::sockopt::last_endpoint);
      routers_.push_back(std::move(router));
      return AsOthersDial(address, bound);
    } catch (const zmq::error_t& error) {
      return Status(Code::kIoError, "listening on " + text + ": " + error.what());
    }
  }

  Status Connect(PeerId peer, const std::string& text) override {
    HDPS_ASSIGN_OR_RETURN(const Address address, AddressToDial(text, options_.insecure));
    const std::string endpoint = address.ToString();
    if (const Link* link = LinkTo(peer); link != nullptr && link->address == endpoint) {
      return Status();
    }
    CallerId& id = dialed_as_[peer];
    if (id.dial++ == 0) id = {options_.self, NewPeerId().value, 1};
    // The address of a process that was replaced belongs to its successor.
    std::erase_if(links_,
                  [&](const Link& link) { return link.peer == peer || link.address == endpoint; });
    try {
      zmq::socket_t dealer = NewSocket(zmq::socket_type::dealer);
      dealer.set(zmq::sockopt::routing_id, zmq::buffer(BytesOf(id)));
      dealer.connect(endpoint);
      links_.push_back({peer, endpoint, std::move(dealer)});
      return Status();
    } catch (const zmq::error_t& error) {
      return Status(Code::kIoError, "dialing " + endpoint + ": " + error.what());
    }
  }

  void HangUp(PeerId peer) override {
    if (Link* link = LinkTo(peer); link != nullptr) link->socket.set(zmq::sockopt::linger, 0);
    std::erase_if(links_, [&](const Link& link) { return link.peer == peer; });
    // A frame to a process that had just died may have offered it memory once more.
    paths_.Forget(peer);
  }

  void Send(PeerId to, Frame frame) override {
    const std::vector<SharedBlock> blocks = paths_.Place(to, &frame);
    SendControl();
    if (!SendSealed(to, frame, blocks)) {
      paths_.TakeBack(to, blocks);
      ++counters_.frames_dropped;
      return;
    }
    ++counters_.frames_sent;
    counters_.bytes_sent += sizeof(FrameHeader) + frame.header.body_bytes;
    for (const SharedBlock& block : blocks) counters_.bytes_shared += block.bytes;
  }

  bool Receive(int64_t timeout_ms, PeerId* from, Frame* frame) override {
    if (TakeFromAny(from, frame)) return true;
    if (timeout_ms <= 0) return false;
    // What paths say to each other is no reason to return empty-handed; but somebody who says more
    // than they ever do must not hold up the caller.
    for (int waits = 0; waits < kWaitsPerReceive; ++waits) {
      const uint64_t heard = controls_heard_;
      const bool more = Wait(timeout_ms);
      if (TakeFromAny(from, frame)) return true;
      if (!more || controls_heard_ == heard) return false;
    }
    return false;
  }

  void Wake() override {
    const uint64_t one = 1;
    // Fails only when the counter is full, and then the loop is awake already.
    [[maybe_unused]] const ssize_t written = write(wake_fd_, &one, sizeof(one));
  }

  SectionAllocator* sections() override { return paths_.sections(); }
  TransportCounters counters() const override { return counters_; }

 private:
  struct Link {
    PeerId peer;
    std::string address;
    zmq::socket_t socket;
  };
  enum class Taken { kNothing, kFrame, kControl, kRefused };

  zmq::socket_t NewSocket(zmq::socket_type type) {
    zmq::socket_t socket(context_, type);
    socket.set(zmq::sockopt::linger, kLingerMs);
    socket.set(zmq::sockopt::sndhwm, static_cast<int>(options_.queue_frames_max));
    socket.set(zmq::sockopt::rcvhwm, static_cast<int>(options_.queue_frames_max));
    socket.set(zmq::sockopt::maxmsgsize, static_cast<int64_t>(kFrameBytesMax));
    socket.set(zmq::sockopt::handshake_ivl, kHandshakeMs);
    socket.set(zmq::sockopt::connect_timeout, kConnectMs);
    socket.set(zmq::sockopt::reconnect_ivl, kReconnectMs);
    socket.set(zmq::sockopt::reconnect_ivl_max, kReconnectMaxMs);
    socket.set(zmq::sockopt::heartbeat_ivl, kBeatMs);
    socket.set(zmq::sockopt::heartbeat_timeout, kBeatTimeoutMs);
    socket.set(zmq::sockopt::ipv6, false);
    // There is no authenticator, so a domain does one thing only: strangers that speak ZMTP 1 or 2,
    // or anything that looks like it, are refused. libzmq 4.3.4 may abort on one while it closes.
    socket.set(zmq::sockopt::zap_domain, "hdps");
    return socket;
  }

  Link* LinkTo(PeerId peer) {
    const auto link =
        std::find_if(links_.begin(), links_.end(), [&](const Link& l) { return l.peer == peer; });
    return link == links_.end() ? nullptr : &*link;
  }

  // What the paths have to say to their other ends; what gets lost is said again when it matters.
  void SendControl() {
    for (Outgoing& control : paths_.TakeOutgoing()) {
      if (!SendSealed(control.to, control.frame, {})) paths_.Unsent(control);
    }
  }

  bool SendSealed(PeerId to, Frame& frame, const std::vector<SharedBlock>& blocks) {
    frame.header.sender = options_.self.value;
    SealFrame(frame);
    if (Link* link = LinkTo(to); link != nullptr) {
      return SendParts(link->socket, nullptr, frame, blocks);
    }
    const CallerId* id = callers_.Find(to);
    bool sent = false;
    if (id == nullptr) return sent;
    for (zmq::socket_t& router : routers_) sent = sent || SendParts(router, id, frame, blocks);
    return sent;
  }

  // Shared sections go as their blocks. False when the first part is not taken: no such peer, or
  // its queue is full. Once ZeroMQ has the first part, the others must follow, even if it drops
  // them: they end the message.
  static bool SendParts(zmq::socket_t& socket, const CallerId* id, const Frame& frame,
                        const std::vector<SharedBlock>& blocks) {
    std::vector<zmq::message_t> parts;
    parts.reserve(3 + frame.sections.size());
    if (id != nullptr) parts.emplace_back(BytesOf(*id).data(), sizeof(CallerIdBytes));
    parts.emplace_back(&frame.header, sizeof(frame.header));
    parts.push_back(PartOf(frame.envelope));
    size_t block = 0;
    for (size_t i = 0; i < frame.sections.size(); ++i) {
      if (IsShared(frame.header, i)) {
        parts.emplace_back(&blocks[block++], sizeof(SharedBlock));
      } else {
        parts.push_back(PartOf(frame.sections[i]));
      }
    }
    bool whole = true;
    for (size_t i = 0; i < parts.size(); ++i) {
      const int flags = ZMQ_DONTWAIT | (i + 1 < parts.size() ? ZMQ_SNDMORE : 0);
      bool taken = zmq_msg_send(parts[i].handle(), socket.handle(), flags) >= 0;
      if (!taken && i == 0 && zmq_errno() == EAGAIN) {
        // ZeroMQ looks for room again about once a millisecond, and when asked for events.
        [[maybe_unused]] const int events = socket.get(zmq::sockopt::events);
        taken = zmq_msg_send(parts[i].handle(), socket.handle(), flags) >= 0;
      }
      if (!taken && i == 0) return false;
      whole = whole && taken;
    }
    return whole;
  }

  // Looks at every socket once, beginning after the one that was served last.
  bool TakeFromAny(PeerId* from, Frame* frame) {
    const size_t num_sockets = routers_.size() + links_.size();
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
      if (taken != Taken::kFrame) continue;
      last_served_ = socket;
      return true;
    }
    return false;
  }

  Taken TakeFrom(size_t index, PeerId* from, Frame* frame) {
    std::vector<zmq::message_t> parts;
    if (index >= routers_.size()) {
      Link& link = links_[index - routers_.size()];
      *from = link.peer;
      return ReceiveParts(link.socket, &parts) ? TakeParts(parts, 0, *from, frame)
                                               : Taken::kNothing;
    }
    if (!ReceiveParts(routers_[index], &parts)) return Taken::kNothing;
    const auto caller = ParseCallerId({parts[0].data<char>(), parts[0].size()});
    *from = caller ? caller->peer : PeerId();
    if (!caller) return Refuse(*from, WhyNoCaller(parts));
    if (LinkTo(*from) != nullptr) return Refuse(*from, "it is heard where it was dialed");
    const Status heard = callers_.Hear(*caller);
    return heard.ok() ? TakeParts(parts, 1, *from, frame) : Refuse(*from, heard.message());
  }

  // Another release may name itself in another way: then its version is what is wrong.
  static std::string WhyNoCaller(const std::vector<zmq::message_t>& parts) {
    Frame frame;
    if (parts.size() > 1 && parts[1].size() == sizeof(FrameHeader)) {
      std::memcpy(&frame.header, parts[1].data(), sizeof(FrameHeader));
    }
    const Status version = CheckFrame(frame);
    return version.code() == Code::kInvalidArgument ? version.message()
                                                    : "its routing id is none of ours";
  }

  // `first`: where the header stands.
  Taken TakeParts(std::vector<zmq::message_t>& parts, size_t first, PeerId from, Frame* frame) {
    if (parts.size() < first + 2 || parts.size() > first + kPartsMax) {
      return Refuse(from, std::to_string(parts.size() - first) + " parts are no frame");
    }
    const zmq::message_t& header = parts[first];
    if (header.size() != sizeof(FrameHeader)) {
      return Refuse(from, "a header of " + std::to_string(header.size()) + " bytes");
    }
    std::memcpy(&frame->header, header.data(), sizeof(FrameHeader));
    frame->envelope = BufferOf(std::move(parts[first + 1]));
    frame->sections.clear();
    Status shared;
    for (size_t i = first + 2; i < parts.size(); ++i) {
      Buffer section = BufferOf(std::move(parts[i]));
      if (IsShared(frame->header, i - first - 2)) {
        Result<Buffer> block = paths_.Take(from, section);
        shared = block.ok() ? shared : block.status();
        if (block.ok()) section = *std::move(block);
      }
      frame->sections.push_back(std::move(section));
    }
    if (!shared.ok()) return Refuse(from, shared.message());
    if (const Status status = CheckFrame(*frame); !status.ok()) {
      return Refuse(from, status.message());
    }
    if (frame->header.sender != from.value) {
      return Refuse(from,
                    "the frame names another sender, " + std::to_string(frame->header.sender));
    }
    if (SharedMemoryLinks::IsControl(frame->header)) {
      paths_.OnControl(from, *frame);
      ++controls_heard_;
      return Taken::kControl;
    }
    ++counters_.frames_received;
    counters_.bytes_received += sizeof(FrameHeader) + frame->header.body_bytes;
    return Taken::kFrame;
  }

  // All parts of one message; of parts beyond any frame's number only the first is kept, so that
  // the message is known to be too long.
  static bool ReceiveParts(zmq::socket_t& socket, std::vector<zmq::message_t>* parts) {
    bool more = true;
    while (more) {
      zmq::message_t part;
      if (zmq_msg_recv(part.handle(), socket.handle(), ZMQ_DONTWAIT) < 0) return false;
      more = part.more();
      if (parts->size() < kPartsMax + 2) parts->push_back(std::move(part));
    }
    return true;
  }

  // Logged once a peer: what went wrong once will go wrong with every retry.
  Taken Refuse(PeerId peer, const std::string& why) {
    ++counters_.frames_refused;
    if (peers_logged_.size() < kPeersLoggedMax && peers_logged_.insert(peer).second) {
      LOG(WARNING) << "refused a frame of peer " << peer.value << ": " << why;
    }
    return Taken::kRefused;
  }

  // False on Wake(), and when nothing happened in time.
  bool Wait(int64_t timeout_ms) {
    std::vector<zmq_pollitem_t> items;
    items.push_back({nullptr, wake_fd_, ZMQ_POLLIN, 0});
    for (zmq::socket_t& socket : routers_) items.push_back({socket.handle(), 0, ZMQ_POLLIN, 0});
    for (Link& link : links_) items.push_back({link.socket.handle(), 0, ZMQ_POLLIN, 0});
    const size_t first_watch = items.size();
    for (const int watch : paths_.Watches()) items.push_back({nullptr, watch, ZMQ_POLLIN, 0});
    const int happened = zmq_poll(items.data(), static_cast<int>(items.size()), timeout_ms);
    for (size_t i = first_watch; i < items.size(); ++i) {
      if (items[i].revents != 0) paths_.ForgetEnded(items[i].fd);
    }
    if ((items[0].revents & ZMQ_POLLIN) == 0) return happened > 0;
    uint64_t wakes = 0;
    [[maybe_unused]] const ssize_t got = read(wake_fd_, &wakes, sizeof(wakes));
    return false;
  }

  const TransportOptions options_;
  const int wake_fd_;
  zmq::context_t context_;  // Before the sockets: it waits for them when it is destroyed.
  std::vector<zmq::socket_t> routers_;
  std::vector<Link> links_;
  std::map<PeerId, CallerId> dialed_as_;  // How we name ourselves to whom.
  Callers callers_;
  SharedMemoryLinks paths_;
  size_t last_served_ = 0;
  uint64_t controls_heard_ = 0;
  std::set<PeerId> peers_logged_;
  TransportCounters counters_;
};

}  // namespace

std::unique_ptr<Transport> NewZmqTransport(const TransportOptions& options) {
  return std::make_unique<ZmqTransport>(options);
}

}  // namespace hdps
