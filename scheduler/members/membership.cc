// Tracks liveness and progress of the members of one view.
#include "scheduler/members/membership.h"

#include <glog/logging.h>

#include <algorithm>
#include <cstdio>
#include <limits>
#include <utility>

#include "common/protocol/status_messages.h"

namespace hdps {
namespace {

// Limit for all members together: about 2 MB of a reply.
constexpr size_t kAwaitedInStatusMax = size_t{1} << 16;

}  // namespace

const Membership::Entry* Membership::WorkerOf(const std::map<PeerId, Entry>& before,
                                              const Entry& entry) {
  if (!entry.worker_rank) return nullptr;
  for (const auto& [peer, former] : before) {
    if (former.worker_rank == entry.worker_rank) return &former;
  }
  return nullptr;
}

void Membership::Enter(View view, const std::map<PeerId, MemberProcess>& processes, TimeMs now) {
  const bool restart = view.restarts > view_.restarts;
  if (restart || members_.empty()) restarted_ = view.view;
  staleness_max_ = staleness_max();
  view_ = std::move(view);
  std::map<PeerId, Entry> before = std::exchange(members_, {});
  for (const Role role : {Role::kServer, Role::kWorker}) {
    for (const Member& member : role == Role::kServer ? view_.Holders() : view_.workers) {
      Entry entry;
      entry.name = entry.place = std::string(RoleName(role)) + " " + std::to_string(member.rank);
      if (const auto process = processes.find(member.peer); process != processes.end()) {
        entry.process = process->second;
        if (!entry.process.host.empty()) entry.name += " (" + entry.process.host + ")";
      }
      if (role == Role::kWorker) entry.worker_rank = member.rank;
      entry.heard = entry.answered_at = now;
      if (const auto stays = before.find(member.peer); stays != before.end()) {
        entry.heard = stays->second.heard;
        entry.newest = stays->second.newest;
        entry.answered = stays->second.answered;
        entry.answered_at = stays->second.answered_at;
        entry.trouble = stays->second.trouble;
        entry.leaving = stays->second.leaving;
        entry.readings = stays->second.readings;
        if (!restart) entry.latest = stays->second.latest;
      } else if (const Entry* const former = restart ? nullptr : WorkerOf(before, entry)) {
        // It takes up the step of this one, whose examples are in no heartbeat any more.
        entry.latest.clock = former->latest.clock;
        entry.latest.epoch_progress = former->latest.epoch_progress;
      }
      members_[member.peer] = std::move(entry);
    }
  }
}

const std::string& Membership::NameOf(PeerId peer) const { return members_.at(peer).name; }

std::optional<uint32_t> Membership::WorkerRank(PeerId peer) const {
  return members_.at(peer).worker_rank;
}

std::vector<PeerId> Membership::servers() const {
  std::vector<PeerId> peers;
  for (const Member& member : view_.servers) {
    if (std::ranges::count(peers, member.peer) == 0) peers.push_back(member.peer);
  }
  return peers;
}

std::vector<PeerId> Membership::holders() const {
  std::vector<PeerId> peers;
  for (const Member& member : view_.Holders()) peers.push_back(member.peer);
  return peers;
}

std::vector<PeerId> Membership::workers() const {
  std::vector<PeerId> peers;
  for (const Member& member : view_.workers) peers.push_back(member.peer);
  return peers;
}

std::vector<PeerId> Membership::all() const {
  std::vector<PeerId> peers = holders();
  for (const PeerId peer : workers()) peers.push_back(peer);
  return peers;
}

void Membership::Heard(PeerId peer, TimeMs now) { members_.at(peer).heard = now; }

void Membership::OnHeartbeat(PeerId peer, const Heartbeat& heartbeat, TimeMs now) {
  Entry& entry = members_.at(peer);
  if (heartbeat.heard > entry.answered) {
    entry.answered = heartbeat.heard;
    entry.answered_at = now;
    entry.deaf = false;
  }
  if (heartbeat.number > entry.newest) {
    entry.newest = heartbeat.number;
    entry.deaf = now - entry.answered_at > dead_after_ms_;
    entry.trouble = heartbeat.trouble;
    entry.activity = heartbeat.activity;
    entry.silent.clear();
    if (!heartbeat.readings.empty()) {
      entry.readings = std::make_shared<const Readings>(heartbeat.readings);
    }
    if (heartbeat.view == view_.view) entry.silent = heartbeat.silent;
  }
  if (heartbeat.view < restarted_) return;
  Heartbeat& latest = entry.latest;
  latest.staleness_max = std::max(latest.staleness_max, heartbeat.staleness_max);
  // Examples and their losses belong together; a late heartbeat is older than what is known.
  if (heartbeat.clock < latest.clock || heartbeat.examples < latest.examples) return;
  const uint64_t staleness_max = latest.staleness_max;
  const CacheTally cache = latest.cache;
  latest = heartbeat;
  latest.readings.clear();  // The entry has them.
  latest.staleness_max = staleness_max;
  latest.cache = cache;
  OnCache(peer, heartbeat.cache);
}

void Membership::OnCache(PeerId peer, const CacheTally& tally) {
  CacheTally& latest = members_.at(peer).latest.cache;
  if (tally.lookups >= latest.lookups) latest = tally;
}

void Membership::ForgiveSilence(TimeMs gap) {
  for (auto& [peer, entry] : members_) {
    entry.heard += gap;
    entry.answered_at += gap;
  }
}

void Membership::OnJoinAgain(PeerId peer, TimeMs now) {
  Entry& entry = members_.at(peer);
  entry.deaf = now - entry.answered_at > dead_after_ms_;
}

void Membership::Release(PeerId peer) { members_.at(peer).released = true; }

void Membership::GiveUp(PeerId peer, const std::string& how) { members_.at(peer).given_up = how; }

TimeMs Membership::SilentFor(PeerId peer, TimeMs now) const {
  return now - members_.at(peer).heard;
}

std::vector<PeerId> Membership::Lost(TimeMs now) const {
  std::vector<PeerId> lost;
  for (const PeerId peer : all()) {
    const Entry& entry = members_.at(peer);
    const bool gone = now - entry.heard > dead_after_ms_ || entry.deaf || !entry.given_up.empty();
    if (!entry.released && gone) lost.push_back(peer);
  }
  return lost;
}

std::vector<PeerId> Membership::leavers() const {
  std::vector<PeerId> leavers;
  for (const PeerId peer : all()) {
    const Entry& entry = members_.at(peer);
    if (!entry.released && entry.given_up.empty() && !entry.leaving.empty()) {
      leavers.push_back(peer);
    }
  }
  return leavers;
}

const std::string& Membership::PlaceOf(PeerId peer) const { return members_.at(peer).place; }

std::vector<LinkReport> Membership::LinkReports() const {
  std::vector<LinkReport> reports;
  for (const PeerId worker : workers()) {
    const Entry& entry = members_.at(worker);
    if (entry.released || entry.deaf || !entry.given_up.empty()) continue;
    reports.push_back({worker, entry.silent});
    std::erase_if(reports.back().silent, [&](const SilentServer& server) {
      const auto at = members_.find(server.peer);
      return at == members_.end() || at->second.released;
    });
  }
  return reports;
}

Membership::Progress Membership::progress() const {
  Progress total;
  total.clock = std::numeric_limits<Clock>::max();
  total.epoch_progress = 1;
  for (const Member& member : view_.workers) {
    const Heartbeat& latest = members_.at(member.peer).latest;
    total.clock = std::min(total.clock, latest.clock);
    total.examples += latest.examples;
    total.loss_sum += latest.loss_sum;
    total.epoch_progress = std::min(total.epoch_progress, latest.epoch_progress);
  }
  return total;
}

void Membership::AddTo(StatusReply* status, TimeMs now) const {
  status->view = view_.view;
  status->clock = progress().clock;
  const std::vector<PeerId> peers = all();
  const size_t awaited_max = std::max(kAwaitedInStatusMax / peers.size(), size_t{1});
  std::map<PeerId, uint64_t> numbers;
  for (const PeerId peer : peers) numbers.emplace(peer, numbers.size() + 1);
  for (const PeerId peer : peers) {
    const Entry& entry = members_.at(peer);
    MemberStatus& member = status->members.emplace_back();
    member.name = entry.name;
    member.clock = entry.latest.clock;
    member.silent_ms = now - entry.heard;
    member.number = status->members.size();
    member.activity = entry.activity;
    std::vector<Awaited>& awaited = member.activity.awaited;
    if (awaited.size() > awaited_max) awaited.resize(awaited_max);
    std::erase_if(awaited, [&](const Awaited& other) { return !numbers.contains(other.peer); });
    for (Awaited& other : awaited) other.peer = {numbers.at(other.peer)};
    member.trouble = entry.leaving.empty() ? entry.trouble : "it leaves: " + entry.leaving;
    member.deaf = entry.deaf;
  }
}

Clock Membership::WorkerClock(uint32_t rank) const {
  CHECK_LT(rank, view_.workers.size());
  return members_.at(view_.workers[rank].peer).latest.clock;
}

bool Membership::AllFinished() const {
  return std::ranges::all_of(view_.workers, [this](const Member& worker) {
    return members_.at(worker.peer).latest.finished;
  });
}

bool Membership::WantsCheckpoint(Clock after, Clock upto) const {
  return std::ranges::any_of(view_.workers, [&](const Member& worker) {
    const Clock wanted = members_.at(worker.peer).latest.wants_checkpoint;
    return wanted > std::max<Clock>(after, 0) && wanted <= upto;
  });
}

CacheTally Membership::cache() const {
  CacheTally sum;
  for (const auto& [peer, entry] : members_) {
    const CacheTally& of_member = entry.latest.cache;
    sum.lookups += of_member.lookups;
    sum.hits += of_member.hits;
    sum.swaps += of_member.swaps;
    sum.bytes += of_member.bytes;
  }
  return sum;
}

uint64_t Membership::staleness_max() const {
  uint64_t largest = staleness_max_;
  for (const auto& [peer, entry] : members_)
    largest = std::max(largest, entry.latest.staleness_max);
  return largest;
}

}  // namespace hdps
