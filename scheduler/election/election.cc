// The steps from candidate to leader, and the ways in which a lead ends.
#include "scheduler/election/election.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include "common/base/exit_status.h"
#include "common/base/outside_text.h"

namespace hdps {
namespace {

constexpr size_t kReasonBytesMax = 1000;

// Reads "STATUS REASON"; bytes from outside.
Election::End ReadEnd(const std::string& text) {
  constexpr int kStatusMax = 255;
  int status = -1;
  const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), status);
  if (error != std::errc() || status < 0 || status > kStatusMax) {
    return {kExitFailed, "the end of the job that etcd holds cannot be read: " +
                             EscapeUntrusted(text, kReasonBytesMax)};
  }
  const size_t at = static_cast<size_t>(rest - text.data());
  return {status, EscapeUntrusted(text.substr(std::min(at + 1, text.size())), kReasonBytesMax)};
}

}  // namespace

Election::Election(ElectionOptions options, TimeMs now)
    : options_(std::move(options)), next_(now), answered_at_(now) {}

int64_t Election::PollMs() const {
  constexpr int64_t kPollsInLease = 10, kLeastMs = 100, kMostMs = 1000;
  return std::clamp(options_.ttl_s * 1000 / kPollsInLease, kLeastMs, kMostMs);
}

std::optional<EtcdRequest> Election::TakeRequest(TimeMs now) {
  if (stand_ == Stand::kLeads && now >= lease_until_) {
    Lose("its lease of " + std::to_string(options_.ttl_s) + " s at etcd was not renewed in time" +
         (fault_.ok() ? "" : ": " + fault_.message()));
  }
  const bool asks = stand_ == Stand::kCandidate || stand_ == Stand::kLeads;
  if (!asks || now < next_) return std::nullopt;
  asked_at_ = now;
  EtcdRequest request;
  request.kind = ask_;
  request.ttl_s = options_.ttl_s;
  request.lease = lease_;
  request.end_revision = end_revision_;
  request.reign = reign_;
  request.text = options_.address;
  return request;
}

void Election::OnAnswer(TimeMs now, const Result<EtcdAnswer>& answer) {
  if (stand_ != Stand::kCandidate && stand_ != Stand::kLeads) return;
  if (stand_ == Stand::kLeads && now >= lease_until_ && !options_.sabotage.leads_from_answer) {
    static_cast<void>(TakeRequest(now));  // Says that the lead is over.
    return;
  }
  if (!answer.ok()) return OnFault(now, answer.status());
  answered_at_ = now;
  fault_ = Status();
  switch (ask_) {
    case Kind::kGrant:
      lease_ = answer->lease;
      TakeLease(now, *answer);
      return Ask(Kind::kCampaign, now);
    case Kind::kCampaign:
      return Ask(Kind::kLook, now);  // Which also tells if an earlier try has succeeded.
    case Kind::kKeepAlive:
      if (answer->ttl_s == 0) return Lose("etcd has ended its lease");
      TakeLease(now, *answer);
      return Ask(Kind::kLook, now);  // Somebody may have removed the key.
    default:
      return OnLook(now, *answer);
  }
}

void Election::TakeLease(TimeMs now, const EtcdAnswer& answer) {
  constexpr int64_t kMarginShare = 10;
  const int64_t ttl_ms = answer.ttl_s * 1000;
  lease_until_ = options_.sabotage.leads_from_answer ? now + ttl_ms
                                                     : asked_at_ + ttl_ms - ttl_ms / kMarginShare;
}

void Election::OnLook(TimeMs now, const EtcdAnswer& answer) {
  constexpr int64_t kRenewalsInLease = 3;
  if (stand_ == Stand::kCandidate) return OnCandidatesLook(now, answer);
  if (!answer.leader || answer.leader->create_revision != reign_) {
    return Lose("its key was removed from etcd");
  }
  Ask(Kind::kKeepAlive, now + options_.ttl_s * 1000 / kRenewalsInLease);
}

void Election::OnCandidatesLook(TimeMs now, const EtcdAnswer& answer) {
  if (!first_revision_) first_revision_ = answer.revision;
  if (Ended(answer)) return;
  end_revision_ = answer.end ? answer.end->mod_revision : 0;
  leader_ = answer.leader ? answer.leader->text : "";
  if (!answer.leader) return Ask(Kind::kGrant, now);
  const bool own = lease_ != 0 && answer.leader->lease == lease_;
  if (own && now < lease_until_) {
    stand_ = Stand::kLeads;
    reign_ = answer.leader->create_revision;
    return Ask(Kind::kKeepAlive, now);
  }
  Ask(Kind::kLook, now + PollMs());  // A key of its own that came too late ends with its lease.
}

bool Election::Ended(const EtcdAnswer& answer) {
  if (!answer.end || answer.end->mod_revision <= *first_revision_) return false;
  if (options_.sabotage.end_is_ignored) return false;
  end_ = ReadEnd(answer.end->text);
  stand_ = Stand::kOver;
  return true;
}

void Election::OnFault(TimeMs now, const Status& fault) {
  fault_ = fault;
  if (stand_ == Stand::kCandidate) {
    if (fault.code() == Code::kInvalidArgument && !first_revision_) {
      stand_ = Stand::kFailed;
      return;
    }
    if (now - answered_at_ >= options_.patience_ms) {
      fault_ = Status(Code::kUnavailable, Awaited(now));
      stand_ = Stand::kFailed;
      return;
    }
    return Ask(Kind::kLook, now + PollMs());
  }
  Ask(ask_, now + PollMs() / 2);
}

void Election::Lose(const std::string& why) {
  if (stand_ != Stand::kLeads) return;
  stand_ = Stand::kLost;
  why_ = why;
}

std::string Election::Awaited(TimeMs now) const {
  if (!fault_.ok()) {
    return "etcd has not answered for " + std::to_string((now - answered_at_) / 1000) + " s of " +
           std::to_string(options_.patience_ms / 1000) + ": " + fault_.message();
  }
  if (leader_.empty()) return "nobody leads yet";
  return "the scheduler at " + EscapeUntrusted(leader_, kReasonBytesMax) + " leads";
}

EtcdRequest Election::EndRequest(int exit_status, const std::string& reason) const {
  EtcdRequest request;
  request.kind = Kind::kEnd;
  request.reign = reign_;
  request.text = std::to_string(exit_status) + " " + EscapeUntrusted(reason, kReasonBytesMax);
  return request;
}

EtcdRequest Election::LeaveRequest() const {
  EtcdRequest request;
  request.kind = Kind::kRevoke;
  request.lease = lease_;
  return request;
}

}  // namespace hdps
