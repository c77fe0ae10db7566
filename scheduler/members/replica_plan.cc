// Places backups and promotes them.
#include "scheduler/members/replica_plan.h"

#include <glog/logging.h>

#include <algorithm>
#include <utility>

#include "common/net/address.h"

namespace hdps {
namespace {

// Returns a text that is equal for two processes on one machine; empty if the address does not
// tell.
std::string MachineOf(const Member& member) {
  const Result<Address> address = ParseAddress(member.address);
  if (!address.ok()) return "";
  return address->scheme == Address::Scheme::kTcp ? address->host : "this machine";
}

}  // namespace

void PlaceGroups(View* view, const std::vector<Member>& present, uint32_t replicas) {
  CHECK(!present.empty());
  CHECK(std::ranges::is_sorted(present, {}, &Member::rank));
  std::vector<Member> primaries;
  std::vector<GroupBackup> backups;
  for (uint32_t g = 0; g < view->servers.size(); ++g) {
    auto holder = std::ranges::lower_bound(present, g, {}, &Member::rank);
    const auto next = [&] {
      if (holder == present.end()) holder = present.begin();
      return *holder++;
    };
    primaries.push_back(next());
    const size_t copies = std::min<size_t>(replicas, present.size() - 1);
    for (size_t i = 0; i < copies; ++i) backups.push_back({{g}, next()});
  }
  view->servers = std::move(primaries);
  view->backups = std::move(backups);
}

std::optional<ViewAfterLoss> WithoutLost(const View& view, const std::vector<PeerId>& lost) {
  const auto is_lost = [&](const Member& member) {
    return std::ranges::count(lost, member.peer) > 0;
  };
  if (std::ranges::any_of(view.workers, is_lost)) return std::nullopt;
  ViewAfterLoss after;
  after.view = view;
  ++after.view.view.value;
  std::vector<GroupBackup>& backups = after.view.backups;
  std::erase_if(backups, [&](const GroupBackup& backup) { return is_lost(backup.member); });
  for (uint32_t g = 0; g < view.servers.size(); ++g) {
    if (!is_lost(view.servers[g])) continue;
    const auto heir = std::ranges::find(backups, ServerId{g}, &GroupBackup::group);
    if (heir == backups.end()) return std::nullopt;
    after.promotions.push_back({{g}, view.servers[g], heir->member});
    after.view.servers[g] = heir->member;
    backups.erase(heir);
  }
  return after;
}

std::map<PeerId, std::vector<ShardId>> IncomingShards(const View& before, const View& next) {
  std::map<PeerId, std::vector<ShardId>> come;
  for (uint32_t s = 0; s < next.shards.num_shards(); ++s) {
    const ServerId was = before.shards.owner[s], is = next.shards.owner[s];
    // A shard that changes its group is moved to all holders of the new group, even if one of them
    // has its rows as a holder of the old group.
    const std::vector<Member> had = was == is ? before.HoldersOf(was) : std::vector<Member>();
    for (const Member& holder : next.HoldersOf(is)) {
      if (std::ranges::count(had, holder.peer, &Member::peer) == 0)
        come[holder.peer].push_back({s});
    }
  }
  return come;
}

std::vector<std::string> MissingCopies(const View& view, uint32_t replicas) {
  std::vector<std::string> missing;
  for (uint32_t g = 0; g < view.servers.size(); ++g) {
    const size_t copies = view.HoldersOf({g}).size() - 1;
    if (copies >= replicas) continue;
    missing.push_back(
        "group " + std::to_string(g) + " has " +
        (copies == 0 ? "no copy"
                     : std::to_string(copies) + " of " + std::to_string(replicas) + " copies") +
        " until a server joins");
  }
  return missing;
}

bool CopiesShareMachine(const View& view) {
  return std::ranges::any_of(view.backups, [&](const GroupBackup& backup) {
    const std::string machine = MachineOf(backup.member);
    return !machine.empty() && machine == MachineOf(view.servers[backup.group.value]);
  });
}

}  // namespace hdps
