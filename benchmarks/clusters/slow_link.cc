// Queues frames in two lanes, each with the time at which its last byte has passed.
#include "benchmarks/clusters/slow_link.h"

#include <algorithm>
#include <deque>
#include <utility>

#include "common/protocol/message_kind.h"

namespace hdps {
namespace {

class SlowTransport : public Transport {
 public:
  SlowTransport(std::unique_ptr<Transport> below, SlowLink& link, MonotonicClock& clock)
      : below_(std::move(below)), link_(link), clock_(clock) {}

  Result<std::string> Listen(const std::string& address) override {
    return below_->Listen(address);
  }
  Status Connect(PeerId peer, const std::string& address) override {
    return below_->Connect(peer, address);
  }
  void HangUp(PeerId peer) override { below_->HangUp(peer); }
  void Wake() override { below_->Wake(); }
  TransportCounters counters() const override { return below_->counters(); }

  void Send(PeerId to, Frame frame) override {
    if (frame.header.kind != static_cast<uint16_t>(MessageKind::kPullReply)) {
      return below_->Send(to, std::move(frame));
    }
    link_.bytes_pulled += BytesOf(frame);
    Queue(&out_, to, std::move(frame));
    SendDue();
  }

  bool Receive(int64_t timeout_ms, PeerId* from, Frame* frame) override {
    const int64_t until = clock_.NowNs() + timeout_ms * kMs;
    while (true) {
      SendDue();
      const int64_t now = clock_.NowNs();
      if (!in_.frames.empty() && in_.frames.front().due_ns <= now) {
        *from = in_.frames.front().peer;
        *frame = std::move(in_.frames.front().frame);
        in_.frames.pop_front();
        return true;
      }
      int64_t next = until;
      for (const Lane* lane : {&out_, &in_}) {
        if (!lane->frames.empty()) next = std::min(next, lane->frames.front().due_ns);
      }
      const int64_t wait_ms = std::max<int64_t>(next - now, 0) / kMs;
      if (below_->Receive(wait_ms, from, frame)) {
        const bool push = frame->header.kind == static_cast<uint16_t>(MessageKind::kPushRequest);
        if (!push || !link_.pushes_too) return true;
        Queue(&in_, *from, std::exchange(*frame, Frame()));
      } else if (clock_.NowNs() >= until || (wait_ms > 0 && clock_.NowNs() < next - kMs)) {
        return false;  // Timed out, or woken.
      }
    }
  }

 private:
  static constexpr int64_t kMs = 1'000'000;
  struct Moving {
    int64_t due_ns = 0;
    PeerId peer;
    Frame frame;
  };
  struct Lane {
    int64_t free_ns = 0;  // When the last frame has passed.
    std::deque<Moving> frames;
  };

  static uint64_t BytesOf(const Frame& frame) {
    uint64_t bytes = frame.envelope.size();
    for (const Buffer& section : frame.sections) bytes += section.size();
    return bytes;
  }
  void Queue(Lane* lane, PeerId peer, Frame frame) {
    const auto takes =
        static_cast<int64_t>(link_.ns_per_byte * static_cast<double>(BytesOf(frame)));
    lane->free_ns = std::max(lane->free_ns, clock_.NowNs()) + takes;
    const int64_t on_its_way = lane == &out_ ? link_.round_trip_ns : 0;
    lane->frames.push_back({lane->free_ns + on_its_way, peer, std::move(frame)});
  }
  void SendDue() {
    while (!out_.frames.empty() && out_.frames.front().due_ns <= clock_.NowNs()) {
      below_->Send(out_.frames.front().peer, std::move(out_.frames.front().frame));
      out_.frames.pop_front();
    }
  }

  const std::unique_ptr<Transport> below_;
  SlowLink& link_;
  MonotonicClock& clock_;
  Lane out_, in_;
};

}  // namespace

std::unique_ptr<Transport> NewSlowTransport(std::unique_ptr<Transport> below, SlowLink& link,
                                            MonotonicClock& clock) {
  return std::make_unique<SlowTransport>(std::move(below), link, clock);
}

}  // namespace hdps
