// Decides by chance what happens to each frame.
#include "common/net/fault_transport.h"

#include <glog/logging.h>

#include <algorithm>
#include <utility>

namespace hdps {
namespace {

// A frame that is to be overtaken waits at most this long for the next one.
constexpr int64_t kOvertakenMs = 50;

const char* WordOf(FrameFaults::Whom whom) {
  switch (whom) {
    case FrameFaults::Whom::kAll:
      return "everybody";
    case FrameFaults::Whom::kScheduler:
      return "the scheduler";
    case FrameFaults::Whom::kMembers:
      return "the members";
  }
  return "";
}

}  // namespace

FaultTransport::FaultTransport(std::unique_ptr<Transport> transport, FrameFaults faults,
                               std::shared_ptr<MonotonicClock> clock)
    : transport_(std::move(transport)),
      faults_(std::move(faults)),
      clock_(std::move(clock)),
      begin_(clock_->NowMs()),
      random_(faults_.seed),
      told_(faults_.cuts.size()) {}

FaultTransport::~FaultTransport() {
  LOG(INFO) << "faults: of " << counters_.sent << " frames sent " << counters_.dropped
            << " were dropped, " << counters_.repeated << " repeated, " << counters_.reordered
            << " overtaken, " << counters_.late << " late, " << counters_.cut_out << " cut off; of "
            << counters_.received << " that came " << counters_.cut_in << " were cut off";
}

Result<std::string> FaultTransport::Listen(const std::string& address) {
  return transport_->Listen(address);
}

Status FaultTransport::Connect(PeerId peer, const std::string& address) {
  return transport_->Connect(peer, address);
}

void FaultTransport::Send(PeerId to, Frame frame) {
  SendDue();
  ++counters_.sent;
  // Every frame takes the same number of draws, so its fate does not depend on the other settings.
  const bool dropped = Chance(faults_.drop), repeated = Chance(faults_.repeat);
  const bool overtaken = Chance(faults_.reorder), late = Chance(faults_.late);
  const auto span = static_cast<uint64_t>(faults_.late_ms_max - faults_.late_ms_min + 1);
  const int64_t late_ms = faults_.late_ms_min + static_cast<int64_t>(random_.Below(span));
  if (dropped) {
    ++counters_.dropped;
    return;
  }
  const int64_t now = clock_->NowMs();
  if (repeated) {
    ++counters_.repeated;
    SendNow(to, frame);
  }
  if (late && late_ms > 0) {
    ++counters_.late;
    return Hold(now + late_ms, {to, std::move(frame)});
  }
  const auto waiting = overtaken_.find(to);
  if (overtaken && waiting == overtaken_.end()) {
    ++counters_.reordered;
    overtaken_[to] = std::move(frame);
    return Hold(now + kOvertakenMs, {to, Frame(), /*overtaken=*/true});
  }
  SendNow(to, std::move(frame));
  if (waiting == overtaken_.end()) return;
  SendNow(to, std::move(waiting->second));
  overtaken_.erase(waiting);
}

void FaultTransport::Hold(int64_t due, Held held) {
  if (held_.size() < kHeldMax) {
    held_.emplace(due, std::move(held));
    return;
  }
  ++counters_.dropped;
  if (held.overtaken) overtaken_.erase(held.to);
}

void FaultTransport::SendDue() {
  const int64_t now = clock_->NowMs();
  while (!held_.empty() && held_.begin()->first <= now) {
    Held held = std::move(held_.extract(held_.begin()).mapped());
    if (!held.overtaken) {
      SendNow(held.to, std::move(held.frame));
      continue;
    }
    const auto waiting = overtaken_.find(held.to);
    if (waiting == overtaken_.end()) continue;  // The next frame came in time.
    SendNow(held.to, std::move(waiting->second));
    overtaken_.erase(waiting);
  }
}

void FaultTransport::SendNow(PeerId to, Frame frame) {
  if (IsCut(to, /*out=*/true)) {
    ++counters_.cut_out;
    return;
  }
  transport_->Send(to, std::move(frame));
}

bool FaultTransport::Receive(int64_t timeout_ms, PeerId* from, Frame* frame) {
  SendDue();
  if (!held_.empty()) {
    const int64_t due_in = std::max<int64_t>(held_.begin()->first - clock_->NowMs(), 0);
    timeout_ms = std::min(timeout_ms, due_in);
  }
  // Receive() may return early; that is harmless because its caller looks at the clock.
  const bool came = transport_->Receive(timeout_ms, from, frame);
  SendDue();
  if (!came) return false;
  ++counters_.received;
  if (!IsCut(*from, /*out=*/false)) return true;
  ++counters_.cut_in;
  *frame = Frame();
  return false;
}

bool FaultTransport::IsCut(PeerId peer, bool out) {
  const int64_t now = clock_->NowMs() - begin_;
  for (size_t i = 0; i < faults_.cuts.size(); ++i) {
    const FrameFaults::Cut& cut = faults_.cuts[i];
    if (!(out ? cut.out : cut.in) || !cut.window.Holds(now)) continue;
    const bool is_scheduler = peer == kSchedulerPeer;
    if (cut.whom == FrameFaults::Whom::kScheduler && !is_scheduler) continue;
    if (cut.whom == FrameFaults::Whom::kMembers && is_scheduler) continue;
    if (told_[i] == 0) {
      told_[i] = 1;
      LOG(WARNING) << "faults: cut off from " << WordOf(cut.whom)
                   << (cut.in && cut.out ? " both ways"
                       : cut.out         ? " outwards"
                                         : " inwards")
                   << ", after " << counters_.sent << " frames sent and " << counters_.received
                   << " received";
    }
    return true;
  }
  return false;
}

}  // namespace hdps
