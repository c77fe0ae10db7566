// Which servers hold copies of which shard groups, and who takes over when servers are lost.
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

// Places the rows of each group of `view` at servers of `present`, which stand in order of rank: at
// the first one from the group's number on, beginning again behind the last, and so many copies at
// those that follow; fewer where there are no more. Requires: somebody is present.
void PlaceGroups(View* view, const std::vector<Member>& present, uint32_t replicas);

// A group whose primary was lost, and who is its primary now.
struct Promotion {
  ServerId group;
  Member from, to;
};
struct ViewAfterLoss {
  View view;  // With the next number; it is no restart.
  std::vector<Promotion> promotions;
};
// `view` without `lost`: of each group the first backup that is left is its primary. None where a
// lost one is a worker, or was the last to hold a group's rows: then the job has to go back.
std::optional<ViewAfterLoss> WithoutLost(const View& view, const std::vector<PeerId>& lost);

// The shards that each server holds in `next` and has not held in `before`, whose rows therefore
// have to come to it.
std::map<PeerId, std::vector<ShardId>> ShardsThatCome(const View& before, const View& next);

// Those groups that have fewer copies than they should: "group 1 has no copy until a server joins".
std::vector<std::string> MissingCopies(const View& view, uint32_t replicas);

// Whether some group's rows and a copy of them are on one machine, as far as addresses tell.
bool CopiesShareMachine(const View& view);

}  // namespace hdps
