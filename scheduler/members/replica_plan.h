// Places the copies of shard groups at servers, and promotes backups when servers are lost.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "common/base/ids.h"
#include "common/protocol/view.h"

namespace hdps {

struct Member;

// Places each group of `view` at servers of `present`, which are in order of rank. The primary is
// the server at the group's number (modulo their count), and `replicas` backups are the servers
// that follow, or fewer if there are not enough. Requires: `present` is not empty.
void PlaceGroups(View* view, const std::vector<Member>& present, uint32_t replicas);

// A group whose primary was lost, and its new primary.
struct Promotion {
  ServerId group;
  Member from, to;
};
struct ViewAfterLoss {
  View view;  // With the next number; not a restart.
  std::vector<Promotion> promotions;
};
// Returns `view` without `lost`: the first remaining backup of each group becomes its primary.
// Returns none if a worker was lost, or the last holder of a group's rows; the job then has to go
// back to a checkpoint.
std::optional<ViewAfterLoss> WithoutLost(const View& view, const std::vector<PeerId>& lost);

// Returns the shards that each server holds in `next` but not in `before`, so that their rows must
// move to it.
std::map<PeerId, std::vector<ShardId>> IncomingShards(const View& before, const View& next);

// Describes the groups that have too few copies: "group 1 has no copy until a server joins".
std::vector<std::string> MissingCopies(const View& view, uint32_t replicas);

// Returns whether some group's rows and a copy of them are on one machine, as far as addresses
// tell.
bool CopiesShareMachine(const View& view);

}  // namespace hdps
