// Builds the edges from the members' reports, and walks along them.
#include "scheduler/why/wait_graph.h"

#include <algorithm>
#include <map>

#include "common/protocol/activity.h"
#include "common/protocol/status_messages.h"

namespace hdps {
namespace {

// Heartbeats that may be late, and the delay of a busy machine.
constexpr int64_t kHeartbeatsLate = 3, kBusyMs = 300;

}  // namespace

int64_t LateMs(const StatusReply& status) {
  return kHeartbeatsLate * status.heartbeat_ms + kBusyMs;
}

WaitGraph::WaitGraph(const StatusReply& status)
    : edges_(status.members.size()),
      overdue_(status.members.size()),
      silent_(status.members.size()),
      full_group_(status.members.size()) {
  const std::vector<MemberStatus>& members = status.members;
  std::map<uint64_t, size_t> places;
  for (size_t m = 0; m < members.size(); ++m) {
    places[members[m].number] = m;
    silent_[m] = members[m].silent_ms > LateMs(status);
  }
  const auto in_group = [&](size_t m) {
    return members[m].activity.wait_reason == WaitReason::kGroup && !silent_[m];
  };
  for (size_t m = 0; m < members.size(); ++m) {
    const Activity& activity = members[m].activity;
    if (silent_[m] || members[m].deaf || !members[m].trouble.empty()) continue;
    if (activity.wait_reason != WaitReason::kMembers && activity.wait_reason != WaitReason::kGroup)
      continue;
    bool any = false;
    for (const Awaited& awaited : activity.awaited) {
      const auto at = places.find(awaited.peer.value);
      if (at == places.end() || at->second == m) continue;
      any = true;
      // A member in the same call is not the one that is missing.
      if (in_group(m) && in_group(at->second)) continue;
      edges_[m].insert(at->second);
      if (awaited.for_ms > LateMs(status)) overdue_[m].insert(at->second);
    }
    full_group_[m] = any && edges_[m].empty();
  }
}

bool WaitGraph::is_awaited(size_t member) const {
  return std::ranges::any_of(edges_, [&](const auto& edges) { return edges.contains(member); });
}

bool WaitGraph::is_overdue(size_t member) const {
  return std::ranges::any_of(overdue_, [&](const auto& edges) { return edges.contains(member); });
}

std::set<size_t> WaitGraph::Reached(const Edges& edges, const std::set<size_t>& from) {
  std::set<size_t> reached = from;
  std::vector<size_t> open(from.begin(), from.end());
  while (!open.empty()) {
    const size_t member = open.back();
    open.pop_back();
    for (const size_t next : edges[member]) {
      if (reached.insert(next).second) open.push_back(next);
    }
  }
  return reached;
}

std::set<size_t> WaitGraph::EndsFrom(const std::set<size_t>& from) const {
  std::set<size_t> ends = Reached(edges_, from);
  std::erase_if(ends, [&](size_t member) { return !edges_[member].empty(); });
  return ends;
}

std::set<size_t> WaitGraph::CirclesFrom(const std::set<size_t>& from) const {
  std::set<size_t> circles = Reached(edges_, from);
  std::erase_if(circles, [&](size_t member) {
    return !Reached(overdue_, overdue_[member]).contains(member);
  });
  return circles;
}

std::set<size_t> WaitGraph::WaitFor(const std::set<size_t>& causes) const {
  std::set<size_t> waiting = causes;
  for (size_t before = 0; before != waiting.size();) {
    before = waiting.size();
    for (size_t m = 0; m < edges_.size(); ++m) {
      const auto waits = [&](size_t other) { return waiting.contains(other); };
      if (std::ranges::any_of(edges_[m], waits)) waiting.insert(m);
    }
  }
  for (const size_t cause : causes) waiting.erase(cause);
  return waiting;
}

}  // namespace hdps
