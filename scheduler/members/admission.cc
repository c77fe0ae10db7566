// Answers join requests.
#include "scheduler/members/admission.h"

#include <algorithm>
#include <utility>

#include "common/base/exit_status.h"
#include "scheduler/members/time_text.h"

namespace hdps {

Admission::Answer Admission::OnJoin(PeerId peer, const JoinRequest& request, Stage stage,
                                    TimeMs now) {
  Answer answer;
  const bool known = rendezvous_.Has(peer);
  answer.refused = rendezvous_.Admit(peer, request, now);
  if (!answer.refused) {
    standing_by_.erase(peer);
    answer.newcomer = !known;
    return answer;
  }
  const std::string name = NameOfProcess(request.role, request.host);
  if (const std::optional<std::string> full = rendezvous_.Full(request)) {
    std::erase_if(standing_by_,
                  [&](const auto& other) { return now - other.second.heard > patience_ms(); });
    const bool comes = !standing_by_.contains(peer);
    if (MayStandBy(peer, request, stage, now)) {
      answer.refused = JoinRefused{0, answer.refused->message, true};
      if (comes) answer.line = name + " stands by: " + *full;
      return answer;
    }
  }
  last_refusal_ = name + " was refused: " + answer.refused->message;
  answer.line = "refused " + name + ": " + answer.refused->message;
  return answer;
}

bool Admission::MayStandBy(PeerId peer, const JoinRequest& request, Stage stage, TimeMs now) {
  if (!standing_by_.contains(peer) && standing_by_.size() >= kStandingByMax) return false;
  StandBy& stands = standing_by_.try_emplace(peer, StandBy{now, now}).first->second;
  stands.heard = now;
  const bool asked_twice =
      stage == Stage::kGathering && rendezvous_.HasRank(request.role, request.rank);
  const bool for_rank = request.rank >= 0 && !asked_twice && !taken_is_final_;
  const bool for_good = stage == Stage::kEnding || for_rank;
  return for_good || now - stands.since <= patience_ms();
}

MemberStep Admission::Gather(TimeMs now) {
  if (!began_) began_ = now;
  MemberStep step;
  for (const std::string& gone : rendezvous_.Expire(now)) {
    step.gone.push_back(gone +
                        " went silent before the cluster was complete; its place is free again");
  }
  const std::string who = rendezvous_.Missing() + "; here: " + rendezvous_.Present();
  const TimeMs waited = now - *began_;
  if (waited >= TimeMs{1000} * cluster_.rendezvous_timeout_s) {
    step.what = MemberStep::Do::kEnd;
    step.end = {kExitFailed,
                "after " + SecondsOf(waited) + " the cluster is not complete: missing " + who};
  } else {
    step.wait = "waiting for " + who;
  }
  return step;
}

void Admission::OnView(TimeMs now) {
  for (auto& [peer, stands] : standing_by_) stands.since = now;
}

void Admission::ForgiveSilence(TimeMs gap) {
  for (auto& [peer, stands] : standing_by_) stands.since += gap, stands.heard += gap;
}

std::vector<PeerId> Admission::standing_by() const {
  std::vector<PeerId> peers;
  for (const auto& [peer, stands] : standing_by_) peers.push_back(peer);
  return peers;
}

}  // namespace hdps
