// Which servers hold copies of which shard groups, and who takes over when servers are lost.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/protocol/messages.h"

namespace hdps {

// Gives every group of `view` so many backups, on the servers that follow its own in order of rank;
// fewer where there are no more servers. Requires: server g is the primary of group g.
void PlaceBackups(View* view, uint32_t replicas);

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

// Those groups that have fewer copies than they should: "group 1 has no copy until a server joins".
std::vector<std::string> MissingCopies(const View& view, uint32_t replicas);

// Whether some group's rows and a copy of them are on one machine, as far as addresses tell.
bool CopiesShareMachine(const View& view);

}  // namespace hdps
