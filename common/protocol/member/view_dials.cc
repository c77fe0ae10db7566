// Follows the holders of rows in a view.
#include "common/protocol/member/view_dials.h"

#include <algorithm>

#include "common/protocol/view.h"

namespace hdps {

std::vector<Member> MembersOfRole(Role role, const View& view) {
  return role == Role::kServer ? view.Holders() : view.workers;
}

void DialServers(Role role, PeerId self, const View& view, Output* output) {
  if (role == Role::kWorker) {
    for (const Member& server : view.Holders()) {
      output->dials.push_back({server.peer, server.address});
    }
    return;
  }
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
