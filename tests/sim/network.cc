// Delivers, loses, repeats and reorders frames.
#include "tests/sim/network.h"

#include <glog/logging.h>

#include <algorithm>
#include <cstddef>
#include <span>

namespace hdps::sim {
namespace {

constexpr TimeMs kTickMs = 10;

}  // namespace

void SimNetwork::Attach(PeerId peer, std::string address, Node* node,
                        std::function<void(TimeMs)> before_tick) {
  CHECK(endpoint_of_.count(peer) == 0) << "peer " << peer.value << " is there already";
  const size_t endpoint = endpoints_.size();
  endpoints_.push_back({peer, std::move(address), node, std::move(before_tick)});
  endpoint_of_[peer] = endpoint;
  // Nodes start in any order.
  Post(now_ + static_cast<TimeMs>(random_.Below(kTickMs)), endpoint, kTick);
}

void SimNetwork::Detach(PeerId peer) {
  const auto at = endpoint_of_.find(peer);
  CHECK(at != endpoint_of_.end());
  endpoints_[at->second].node = nullptr;
  endpoint_of_.erase(at);
}

void SimNetwork::HoldUp(PeerId peer, TimeMs ms) {
  const auto at = endpoint_of_.find(peer);
  if (at == endpoint_of_.end()) return;
  TimeMs& until = endpoints_[at->second].stands_until;
  until = std::max(until, now_) + ms;
}

bool SimNetwork::RunUntil(TimeMs until, const std::function<bool()>& done) {
  if (done()) return true;
  while (true) {
    // If all nodes are gone, time continues until one comes.
    const TimeMs next = events_.empty() ? now_ + kTickMs : events_.top().at;
    if (next > until) return false;
    if (next > now_) {
      now_ = next;
      if (done()) return true;
    }
    if (events_.empty()) continue;
    const Event event = events_.top();
    events_.pop();
    if (const Endpoint& to = endpoints_[event.endpoint]; to.stands_until > now_) {
      Post(to.stands_until, event.endpoint, event.frame);
      continue;
    }
    if (event.frame != kTick) {
      Deliver(event);
    } else if (Endpoint& to = endpoints_[event.endpoint]; to.node != nullptr) {
      to.listens = true;
      if (watch_) watch_(to.peer, to.peer, nullptr);
      if (to.before_tick) to.before_tick(now_);
      to.node->OnTick(now_);
      Post(now_ + kTickMs, event.endpoint, kTick);
    }
    Flush(event.endpoint);
  }
}

void SimNetwork::Post(TimeMs at, size_t endpoint, size_t frame) {
  events_.push({at, next_order_++, endpoint, frame});
}

void SimNetwork::PostFrame(TimeMs at, size_t endpoint, InFlight flight) {
  size_t slot = frames_.size();
  if (free_frames_.empty()) {
    frames_.emplace_back();
  } else {
    slot = free_frames_.back();
    free_frames_.pop_back();
  }
  frames_[slot] = std::move(flight);
  Post(at, endpoint, slot);
}

void SimNetwork::Deliver(const Event& event) {
  InFlight flight = std::move(frames_[event.frame]);
  frames_[event.frame] = {};
  free_frames_.push_back(event.frame);
  Endpoint& to = endpoints_[event.endpoint];
  if (to.node == nullptr || !to.listens || IsOut(to.peer) || IsCut(flight.from, to.peer)) return;
  const Status status = CheckFrame(flight.frame);
  CHECK_EQ(status.ok(), !flight.damaged) << status.message();
  if (!status.ok()) return;  // Refused by the transport, so it counts as lost.
  to.reachable.insert(flight.from);
  const FrameHeader& header = flight.frame.header;
  for (const uint64_t part : {static_cast<uint64_t>(now_), flight.from.value, to.peer.value,
                              header.request_id, header.header_checksum}) {
    trace_ = MixBits(trace_ ^ part) + 0x9e3779b97f4a7c15u;
  }
  ++frames_delivered_;
  if (watch_) watch_(to.peer, flight.from, &flight.frame);
  to.node->OnFrame(flight.from, std::move(flight.frame));
}

void SimNetwork::Flush(size_t endpoint) {
  if (endpoints_[endpoint].node == nullptr) return;
  Output output = endpoints_[endpoint].node->TakeOutput();
  Endpoint& from = endpoints_[endpoint];
  for (const Dial& dial : output.dials) {
    const auto to = endpoint_of_.find(dial.peer);  // Gone, or not started yet.
    if (to != endpoint_of_.end() && endpoints_[to->second].address != dial.address) {
      CHECK(forged_addresses_) << dial.address << " instead of " << endpoints_[to->second].address;
      continue;
    }
    from.reachable.insert(dial.peer);
  }
  for (Outgoing& out : output.frames) Send(from, std::move(out));
}

void SimNetwork::Send(Endpoint& from, Outgoing out) {
  out.frame.header.sender = from.peer.value;
  for (const auto& spy : spies_) spy(from.peer, out.to, &out.frame);
  const auto to = endpoint_of_.find(out.to);
  // Like a transport, it reaches only peers that were dialed or have sent something.
  if (to == endpoint_of_.end() || from.reachable.count(out.to) == 0 || IsOut(from.peer) ||
      IsCut(from.peer, out.to) || Chance(weather_.loss_percent)) {
    return;
  }
  ChecksumFrame(out.frame);
  const int copies = Chance(weather_.repeat_percent) ? 2 : 1;
  for (int copy = 0; copy < copies; ++copy) {
    TimeMs delay = 1 + static_cast<TimeMs>(random_.Below(weather_.delay_ms_max));
    if (Chance(weather_.slow_percent)) delay *= 1 + static_cast<TimeMs>(random_.Below(20));
    InFlight flight{from.peer, out.frame, Chance(weather_.damage_percent)};
    if (flight.damaged) Damage(&flight.frame);
    PostFrame(now_ + delay, to->second, std::move(flight));
  }
}

void SimNetwork::Inject(PeerId from, PeerId to, Frame frame) {
  const auto endpoint = endpoint_of_.find(to);
  frame.header.sender = from.value;
  ChecksumFrame(frame);
  if (endpoint == endpoint_of_.end() || !CheckFrame(frame).ok()) return;
  PostFrame(now_ + 1, endpoint->second, {from, std::move(frame)});
}

// Changes one bit of the header or of the envelope.
void SimNetwork::Damage(Frame* frame) {
  const auto flip = [this](std::byte* bytes, size_t size) {
    bytes[random_.Below(size)] ^= std::byte{1} << random_.Below(8);
  };
  if (frame->envelope.empty() || Chance(50)) {
    flip(reinterpret_cast<std::byte*>(&frame->header), sizeof(FrameHeader));
    return;
  }
  std::span<std::byte> bytes;
  Buffer copy = Buffer::Allocate(frame->envelope.size(), &bytes);
  std::copy(frame->envelope.bytes().begin(), frame->envelope.bytes().end(), bytes.begin());
  flip(bytes.data(), bytes.size());
  frame->envelope = std::move(copy);
}

bool SimNetwork::IsCut(PeerId from, PeerId to) const {
  const auto holds = [this](const auto& fault) { return now_ >= fault.from && now_ < fault.until; };
  const bool between = std::ranges::any_of(cuts_, [&](const Cut& cut) {
    return holds(cut) && ((cut.a == from && cut.b == to) || (cut.a == to && cut.b == from));
  });
  return between || std::ranges::any_of(partitions_, [&](const Partition& partition) {
           const bool sender_in = partition.places.contains(PlaceOf(from));
           const bool receiver_in = partition.places.contains(PlaceOf(to));
           return holds(partition) && sender_in != receiver_in &&
                  (sender_in ? partition.out : partition.in);
         });
}

bool SimNetwork::IsOut(PeerId peer) const {
  for (const Outage& outage : outages_) {
    if ((outage.peer == peer || outage.peer == kEveryone) && now_ >= outage.from &&
        now_ < outage.until)
      return true;
  }
  return false;
}

}  // namespace hdps::sim
