// Implements admission, ranks and the first view.
#include "scheduler/members/rendezvous.h"
#include "common/base/hex_digits.h"

#include <glog/logging.h>

#include <algorithm>
#include <set>
#include <tuple>
#include <utility>

#include "common/base/outside_text.h"
#include "common/net/address.h"
#include "common/protocol/membership_messages.h"
#include "common/protocol/view.h"
#include "scheduler/balance/shard_placement.h"

namespace hdps {
namespace {

JoinRefused Mistaken(std::string message) { return {2, std::move(message)}; }

std::string Counted(uint32_t count, Role role) {
  return std::to_string(count) + " " + RoleName(role) + (count == 1 ? "" : "s");
}

std::string InBrackets(const std::string& host) { return host.empty() ? "" : " (" + host + ")"; }

}  // namespace

std::string NameOfProcess(Role role, const std::string& host) {
  return host.empty() ? std::string("a ") + RoleName(role) : host;
}

std::string WrongAddress(Role role, const std::string& address) {
  if (role == Role::kWorker) {
    return address.empty() ? "" : "a worker listens nowhere, and this one says it does";
  }
  if (address.empty()) return "a server must say where it listens, and this one did not";
  const Result<Address> parsed = ParseAddress(address);
  if (!parsed.ok()) return EscapeUntrusted(parsed.status().message());
  if (!parsed->CanBeDialed()) {
    return "address " + EscapeUntrusted(address) +
           " cannot be dialed; a server says the host and port it listens on";
  }
  return "";
}

std::optional<JoinRefused> Rendezvous::Admit(PeerId peer, const JoinRequest& request, TimeMs now) {
  if (auto known = candidates_.find(peer); known != candidates_.end()) {
    known->second.heard = now;
    return std::nullopt;
  }
  if (std::optional<JoinRefused> mistake = Mistake(request)) return mistake;
  if (std::optional<JoinRefused> taken = Taken(request)) return taken;
  recorded_ = recorded_ || request.records;
  // After Shrink() the rank may be gone or taken; any rank will do then.
  const bool has_rank = request.rank >= 0 &&
                        static_cast<uint32_t>(request.rank) < Quota(request.role) &&
                        OfRank(request.role, request.rank) == nullptr;
  candidates_[peer] = {peer,
                       request.role,
                       has_rank ? request.rank : -1,
                       request.address,
                       {request.host, request.process, request.records},
                       std::make_shared<ProcessWatch>(request.process),
                       now};
  CheckComplete();
  return std::nullopt;
}

void Rendezvous::CheckComplete() {
  complete_ = Count(Role::kServer) == num_servers_ && Count(Role::kWorker) == num_workers_;
  if (!complete_) return;
  was_complete_ = true;
  AssignRanks(Role::kServer);
  AssignRanks(Role::kWorker);
}

void Rendezvous::Settle(const View& view) {
  for (auto& [peer, candidate] : candidates_) candidate.settled = candidate.returned = false;
  for (const std::vector<Member>& members : {view.Holders(), view.workers}) {
    for (const Member& member : members) {
      const auto at = candidates_.find(member.peer);
      if (at != candidates_.end()) at->second.settled = true;
    }
  }
  vacated_.clear();
}

void Rendezvous::Restore(const View& view, const std::map<PeerId, MemberProcess>& processes,
                         TimeMs now) {
  CHECK(candidates_.empty());
  for (const Role role : {Role::kServer, Role::kWorker}) {
    const bool servers = role == Role::kServer;
    // A server that holds several groups is one member; another server's place is free then.
    const std::vector<Member> members = servers ? view.Holders() : view.workers;
    (servers ? num_servers_ : num_workers_) =
        static_cast<uint32_t>(servers ? view.servers.size() : view.workers.size());
    for (const Member& member : members) {
      const auto found = processes.find(member.peer);
      const MemberProcess process = found == processes.end() ? MemberProcess() : found->second;
      recorded_ = recorded_ || process.records;
      candidates_[member.peer] = {member.peer,
                                  role,
                                  static_cast<int32_t>(member.rank),
                                  member.address,
                                  process,
                                  std::make_shared<ProcessWatch>(process.name),
                                  now};
    }
  }
  CheckComplete();
}

std::vector<PeerId> Rendezvous::Ended() {
  std::vector<PeerId> ended;
  for (const auto& [peer, candidate] : candidates_) {
    if (candidate.watch->Look() == ProcessState::kEnded) ended.push_back(peer);
  }
  return ended;
}

void Rendezvous::Vacate(PeerId peer) {
  const auto at = candidates_.find(peer);
  if (at == candidates_.end()) return;
  vacated_[peer] = std::move(at->second);
  candidates_.erase(at);
  complete_ = false;
}

void Rendezvous::OpenPlaces(Role role, uint32_t count) {
  (role == Role::kServer ? num_servers_ : num_workers_) = std::max(count, Count(role));
  CheckComplete();
}

std::vector<PeerId> Rendezvous::Dismiss(Role role, uint32_t count) {
  std::vector<const Candidate*> here = Of(role);
  std::ranges::sort(here, {}, &Candidate::rank);
  std::vector<PeerId> dismissed;
  for (size_t i = count; i < here.size(); ++i) dismissed.push_back(here[i]->peer);
  for (const PeerId peer : dismissed) candidates_.erase(peer);
  (role == Role::kServer ? num_servers_ : num_workers_) = count;
  CheckComplete();
  return dismissed;
}

bool Rendezvous::Return(PeerId peer, TimeMs now) {
  const auto at = vacated_.find(peer);
  if (at == vacated_.end()) return false;
  const Candidate& back = at->second;
  if (Count(back.role) >= Quota(back.role)) return false;
  const bool has_rank = static_cast<uint32_t>(back.rank) < Quota(back.role) &&
                        OfRank(back.role, back.rank) == nullptr;
  Candidate& candidate = candidates_[peer] = back;
  if (!has_rank) candidate.rank = -1;
  candidate.heard = now;
  candidate.settled = false;
  candidate.returned = true;
  vacated_.erase(at);
  CheckComplete();
  return true;
}

uint32_t Rendezvous::Count(Role role) const { return static_cast<uint32_t>(Of(role).size()); }

void Rendezvous::Shrink(Role role) {
  CHECK_GT(Count(role), 0u);
  std::vector<Candidate*> left;
  for (auto& [peer, candidate] : candidates_) {
    if (candidate.role == role) left.push_back(&candidate);
  }
  // Members without a rank come after those that have one.
  std::ranges::stable_sort(
      left, {}, [](const Candidate* candidate) { return static_cast<uint32_t>(candidate->rank); });
  for (size_t i = 0; i < left.size(); ++i) left[i]->rank = static_cast<int32_t>(i);
  (role == Role::kServer ? num_servers_ : num_workers_) = static_cast<uint32_t>(left.size());
  CheckComplete();
}

std::optional<std::string> Rendezvous::Full(const JoinRequest& request) const {
  if (Mistake(request)) return std::nullopt;
  const std::optional<JoinRefused> taken = Taken(request);
  return taken ? std::optional(taken->message) : std::nullopt;
}

std::optional<JoinRefused> Rendezvous::Mistake(const JoinRequest& request) const {
  const Role role = request.role;
  const std::string name = RoleName(role);
  if (role != Role::kServer && role != Role::kWorker) {
    return Mistaken("a " + name + " cannot join: only servers and workers do");
  }
  if (request.job_digest != options_.job_digest) {
    // A process that does not know the job's digest must not learn it here.
    return Mistaken("this " + name +
                    " has another job than the scheduler: its job has the digest " +
                    HexDigits(request.job_digest) +
                    ", the scheduler's has another; start all of them with the same --job and the "
                    "same --set");
  }
  for (const auto& [told, ours, of] :
       {std::tuple(request.num_servers, options_.num_servers, "servers"),
        std::tuple(request.num_workers, options_.num_workers, "workers")}) {
    if (told != 0 && told != ours) {
      return Mistaken("this " + name + " was started with --" + of + "=" + std::to_string(told) +
                      ", the scheduler with --" + of + "=" + std::to_string(ours) +
                      "; give all of them the same number");
    }
  }
  if (const std::string wrong = WrongAddress(role, request.address); !wrong.empty())
    return Mistaken(wrong);
  // After Shrink() there are fewer ranks, which a restarted process cannot know.
  const uint32_t ranks =
      std::max(Quota(role), role == Role::kServer ? options_.num_servers : options_.num_workers);
  if (request.rank >= 0 && static_cast<uint32_t>(request.rank) >= ranks) {
    return Mistaken("rank " + std::to_string(request.rank) + " is beyond the job's " +
                    Counted(ranks, role) + "; --rank may be 0 to " + std::to_string(ranks - 1));
  }
  return std::nullopt;
}

std::optional<JoinRefused> Rendezvous::Taken(const JoinRequest& request) const {
  const Role role = request.role;
  const std::string name = RoleName(role);
  const bool full = Count(role) >= Quota(role);
  if (!full && was_complete_) return std::nullopt;
  if (const Candidate* const other = OfRank(role, request.rank)) {
    return Mistaken("rank " + std::to_string(request.rank) + " of the " + name + "s is taken: by " +
                    NameOfProcess(role, other->process.host) + ", and " +
                    NameOfProcess(role, request.host) + " asks for it too; give each " + name +
                    " a --rank of its own");
  }
  if (full) {
    return Mistaken("the job has its " + Counted(Quota(role), role) + ", so " +
                    NameOfProcess(role, request.host) +
                    " is one too many; start it for another job, or the job with more --" + name +
                    "s");
  }
  return std::nullopt;
}

std::vector<std::string> Rendezvous::Expire(TimeMs now) {
  std::vector<std::string> gone;
  for (auto it = candidates_.begin(); it != candidates_.end();) {
    const bool left = now - it->second.heard > options_.dead_after_ms ||
                      it->second.watch->Look() == ProcessState::kEnded;
    if (!it->second.settled && left) {
      gone.push_back(RoleName(it->second.role) + InBrackets(it->second.process.host));
      if (it->second.returned) vacated_[it->first] = it->second;  // It may be heard once more.
      it = candidates_.erase(it);
      complete_ = false;
    } else {
      ++it;
    }
  }
  return gone;
}

void Rendezvous::Heard(PeerId peer, TimeMs now) {
  if (const auto at = candidates_.find(peer); at != candidates_.end()) at->second.heard = now;
}

void Rendezvous::ForgiveSilence(TimeMs gap) {
  for (auto& [peer, candidate] : candidates_) candidate.heard += gap;
}

void Rendezvous::AssignRanks(Role role) {
  std::set<int32_t> free;
  for (uint32_t r = 0; r < Quota(role); ++r) free.insert(static_cast<int32_t>(r));
  std::vector<Candidate*> unranked;
  for (auto& [peer, candidate] : candidates_) {
    if (candidate.role != role) continue;
    // The cluster became smaller after it joined; members of a view have lower ranks.
    if (candidate.rank >= static_cast<int32_t>(Quota(role))) candidate.rank = -1;
    if (candidate.rank >= 0) {
      free.erase(candidate.rank);
    } else {
      unranked.push_back(&candidate);
    }
  }
  std::sort(unranked.begin(), unranked.end(), [](const Candidate* a, const Candidate* b) {
    return std::tie(a->address, a->process.host, a->peer) <
           std::tie(b->address, b->process.host, b->peer);
  });
  for (Candidate* candidate : unranked) {
    candidate->rank = *free.begin();
    free.erase(free.begin());
  }
  CHECK(free.empty());
}

View Rendezvous::FormView(ViewId id, const ShardMap* before) const {
  CHECK(complete_);
  View view;
  view.view = id;
  view.servers = MembersOf(Role::kServer);
  view.workers = MembersOf(Role::kWorker);
  if (before != nullptr) {
    view.shards = MoveFewestShards(*before, num_servers_);
  } else if (options_.placement.owner.empty()) {
    view.shards = EvenShards(options_.num_shards, num_servers_);
  } else {
    view.shards = options_.placement;
  }
  return view;
}

std::vector<Member> Rendezvous::MembersOf(Role role) const {
  std::vector<Member> members;
  for (const Candidate* candidate : Of(role)) {
    members.push_back(
        {candidate->peer, static_cast<uint32_t>(candidate->rank), candidate->address});
  }
  std::ranges::sort(members, {}, &Member::rank);
  return members;
}

bool Rendezvous::FillWorkers() {
  if (Count(Role::kWorker) != num_workers_) return false;
  AssignRanks(Role::kWorker);
  return true;
}

std::vector<Member> Rendezvous::Workers() const { return MembersOf(Role::kWorker); }

std::vector<const Rendezvous::Candidate*> Rendezvous::Of(Role role) const {
  std::vector<const Candidate*> found;
  for (const auto& [peer, candidate] : candidates_) {
    if (candidate.role == role) found.push_back(&candidate);
  }
  return found;
}

const Rendezvous::Candidate* Rendezvous::OfRank(Role role, int32_t rank) const {
  if (rank < 0) return nullptr;
  for (const auto& [peer, candidate] : candidates_) {
    if (candidate.role == role && candidate.rank == rank) return &candidate;
  }
  return nullptr;
}

std::string Rendezvous::MissingOf(Role role) const {
  const std::vector<const Candidate*> here = Of(role);
  const uint32_t missing = Quota(role) - static_cast<uint32_t>(here.size());
  if (missing == 0) return "";
  std::string text = std::to_string(missing) + " of " + Counted(Quota(role), role);
  // The missing ranks are known only if every candidate asked for one.
  std::set<int32_t> taken;
  for (const Candidate* candidate : here) {
    if (candidate->rank < 0) return text;
    taken.insert(candidate->rank);
  }
  if (taken.empty()) return text;
  std::string ranks;
  for (uint32_t r = 0; r < Quota(role); ++r) {
    if (taken.contains(static_cast<int32_t>(r))) continue;
    ranks += (ranks.empty() ? "" : ", ") + std::string(RoleName(role)) + " " + std::to_string(r);
  }
  return text + " (" + ranks + ")";
}

std::string Rendezvous::Missing() const {
  const std::string servers = MissingOf(Role::kServer), workers = MissingOf(Role::kWorker);
  return servers.empty() || workers.empty() ? servers + workers : servers + " and " + workers;
}

std::string Rendezvous::Present() const {
  std::string text;
  for (const Role role : {Role::kServer, Role::kWorker}) {
    for (const Candidate* candidate : Of(role)) {
      if (!text.empty()) text += ", ";
      text += candidate->Name();
    }
  }
  return text.empty() ? "nobody" : text;
}

std::vector<PeerId> Rendezvous::peers() const {
  std::vector<PeerId> peers;
  for (const auto& [peer, candidate] : candidates_) peers.push_back(peer);
  return peers;
}

const MemberProcess& Rendezvous::ProcessOf(PeerId peer) const {
  const auto found = candidates_.find(peer);
  CHECK(found != candidates_.end());
  return found->second.process;
}

std::string Rendezvous::NameOf(PeerId peer) const { return candidates_.at(peer).Name(); }

std::string Rendezvous::Candidate::Name() const {
  return RoleName(role) + (rank >= 0 ? " " + std::to_string(rank) : "") + InBrackets(process.host);
}

}  // namespace hdps
