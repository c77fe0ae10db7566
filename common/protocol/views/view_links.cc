// Derives the connections of a member from a view.
#include "common/protocol/views/view_links.h"

#include <algorithm>
#include <vector>

namespace hdps {

void DialServers(const View& view, Role role, PeerId self, Output* output) {
  if (role == Role::kWorker) {
    for (const Member& server : view.Holders()) {
      output->dials.push_back({server.peer, server.address});
    }
    return;
  }
  // Of two servers, the one with the smaller number always dials, because a transport does not hear
  // callers that it has dialed itself.
  const auto dial_from = [&](const Member& one, const Member& other) {
    if (one.peer != self || other.peer < one.peer) return;
    output->dials.push_back({other.peer, other.address});
  };
  for (uint32_t group = 0; group < view.servers.size(); ++group) {
    const std::vector<Member> holders = view.HoldersOf({group});
    for (size_t i = 0; i + 1 < holders.size(); ++i) {
      dial_from(holders[i], holders[i + 1]);
      dial_from(holders[i + 1], holders[i]);
    }
  }
}

void HangUpWhoLeft(const View& before, const View& now, Output* output) {
  const auto all_of = [](const View& of) {
    std::vector<Member> all = of.Holders();
    all.insert(all.end(), of.workers.begin(), of.workers.end());
    return all;
  };
  const std::vector<Member> here = all_of(now);
  for (const Member& member : all_of(before)) {
    if (std::ranges::count(here, member.peer, &Member::peer) == 0) {
      output->hang_ups.push_back(member.peer);
    }
  }
}

}  // namespace hdps
