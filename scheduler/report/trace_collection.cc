// Orders the phases of a trace, and hands out its parts.
#include "scheduler/report/trace_collection.h"

#include <algorithm>
#include <utility>

#include "scheduler/members/membership.h"

namespace hdps {
namespace {

constexpr TimeMs kMeasureMs = 500;  // Heartbeats at every tick, to bring clocks together.
constexpr TimeMs kAheadMs = 400;    // The recording begins so much later, for speeds vary.
constexpr TimeMs kOrderMs = 100;    // Time in which every member surely has an order.
constexpr TimeMs kRepliesMs = 200;  // Time for the replies to the last requests.
constexpr TimeMs kStandstillMs = 60'000;
constexpr TimeMs kLastPartsMs = 10'000;
constexpr TimeMs kSilentClientMs = 3'000;

Clock FurthestOf(const Membership& members) {
  Clock furthest = 0;
  for (uint32_t rank = 0; rank < members.view().workers.size(); ++rank) {
    furthest = std::max(furthest, members.WorkerClock(rank));
  }
  return furthest;
}

}  // namespace

TraceReply TraceCollection::OnRequest(const TraceRequest& request, const Membership* members,
                                      TimeMs now) {
  const auto refusal = [](Code code, const std::string& why) {
    TraceReply reply;
    reply.code = code;
    reply.message = why;
    return reply;
  };
  if (request.trace == 0 || request.steps < 1 || request.steps > kTraceStepsMax) {
    return refusal(Code::kInvalidArgument, "a trace has 1 to " + std::to_string(kTraceStepsMax) +
                                               " steps, not " + std::to_string(request.steps));
  }
  if (request.trace != order_.trace) {
    if (request.part > 0) {
      return refusal(Code::kNotFound, "the scheduler knows nothing of this trace any more");
    }
    if (active()) return refusal(Code::kUnavailable, "another trace is being taken");
    if (members == nullptr) {
      return refusal(Code::kUnavailable, "the job has not begun: not all members are there");
    }
    Begin(request, *members, now);
  }
  asked_at_ = now;
  while (taken_ < request.part && !parts_.empty()) {
    bytes_ -= parts_.front().part.packed.spans.size();
    parts_.pop_front();
    ++taken_;
  }
  TraceReply reply;
  reply.from = order_.from;
  reply.until = order_.until;
  if (!parts_.empty() && taken_ == request.part) {
    const auto& [member, part] = parts_.front();
    reply.has_part = true;
    reply.member = member;
    reply.left_out = part.left_out;
    reply.offset_ns = part.offset_ns;
    reply.uncertainty_ns = part.uncertainty_ns;
    reply.packed = part.packed;
    return reply;
  }
  reply.whole = whole_;
  if (!whole_) return reply;
  for (const std::string& what : missing_) {
    reply.message += (reply.message.empty() ? "" : "; ") + what;
  }
  Forget();
  return reply;
}

void TraceCollection::Begin(const TraceRequest& request, const Membership& members, TimeMs now) {
  Forget();
  order_.trace = request.trace;
  steps_ = request.steps;
  restarts_ = members.view().restarts;
  for (const PeerId peer : members.all()) awaited_.insert(peer);
  slowest_ = members.progress().clock;
  moved_at_ = asked_at_ = now;
  SetPhase(TracePhase::kMeasure, now);
}

void TraceCollection::SetPhase(TracePhase phase, TimeMs now) {
  order_.phase = phase;
  since_ = now;
  changed_ = true;
}

void TraceCollection::Forget() {
  *this = TraceCollection();
  changed_ = true;
}

void TraceCollection::OnPart(PeerId from, const std::string& name, TracePart part) {
  if (!active() || whole_ || part.trace != order_.trace) return;
  if (part.last) awaited_.erase(from);
  if (part.packed.spans.empty() && part.left_out == 0) return;
  if (bytes_ + part.packed.spans.size() > kBytesMax) {
    ++parts_left_out_;
    return;
  }
  bytes_ += part.packed.spans.size();
  parts_.push_back({name, std::move(part)});
}

void TraceCollection::OnTick(TimeMs now) {
  now_ = now;
  if (active() && now - asked_at_ > kSilentClientMs) Forget();
}

void TraceCollection::BeginRecording(Clock furthest, TimeMs now) {
  // The furthest worker makes so many steps until it has the order.
  const Clock made = furthest - measured_;
  const Clock ahead = 1 + (made * kAheadMs) / std::max<TimeMs>(now - measured_at_, 1);
  order_.from = furthest + 1 + ahead * static_cast<Clock>(made > 0);
  order_.until = order_.from + steps_;
  SetPhase(TracePhase::kRecord, now);
}

void TraceCollection::OnTick(const Membership& members, TimeMs now) {
  OnTick(now);
  if (!active() || whole_) return;
  std::erase_if(awaited_, [&](PeerId peer) {
    if (members.Has(peer)) return false;
    missing_.push_back("a member was lost meanwhile, and its spans of the last moments with it");
    return true;
  });
  if (members.view().restarts != restarts_) Close("the job went back to a checkpoint");
  const Clock slowest = members.progress().clock;
  if (slowest != std::exchange(slowest_, slowest)) moved_at_ = now;
  if (order_.phase < TracePhase::kClose && now - moved_at_ >= kStandstillMs) {
    Close("no step has ended for 60 s; hdps why tells what holds the job");
  }
  switch (order_.phase) {
    case TracePhase::kNone:
      return;
    case TracePhase::kMeasure:
      // The heartbeats of all workers are fresh by then.
      if (measured_ < 0 && now - since_ >= kOrderMs) {
        measured_ = FurthestOf(members);
        measured_at_ = now;
      } else if (measured_ >= 0 && now - since_ >= kMeasureMs) {
        BeginRecording(FurthestOf(members), now);
      }
      return;
    case TracePhase::kRecord:
      if (slowest < order_.until) return;
      if (reached_at_ == 0) reached_at_ = now;
      if (now - reached_at_ >= kRepliesMs) SetPhase(TracePhase::kClose, now);
      return;
    case TracePhase::kClose:
      if (!awaited_.empty() && now - since_ < kLastPartsMs) return;
      for (const PeerId peer : awaited_) {
        missing_.push_back(members.PlaceOf(peer) + " has not sent all that it recorded");
      }
      End("");
  }
}

void TraceCollection::Close(const std::string& why) {
  if (!active() || whole_ || order_.phase == TracePhase::kClose) return;
  missing_.push_back(why);
  if (order_.phase < TracePhase::kRecord) return End("");
  SetPhase(TracePhase::kClose, now_);
}

void TraceCollection::End(const std::string& why) {
  if (!active() || whole_) return;
  if (!why.empty()) missing_.push_back(why);
  if (parts_left_out_ > 0) {
    missing_.push_back(std::to_string(parts_left_out_) +
                       " parts were left out, because 256 MiB of others waited to be taken");
  }
  whole_ = true;
}

}  // namespace hdps
