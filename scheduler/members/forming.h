// Forms the views of a job: the first, and those after losses and after changes of its size.
#pragma once

#include <cstdint>

#include "common/base/ids.h"

namespace hdps {

struct ShardMap;
struct View;
class Rendezvous;

inline constexpr ViewId kFirstView{1};

// Returns the first view. Requires: `rendezvous` is complete.
View FirstView(const Rendezvous& rendezvous, uint32_t replicas);

// Returns the view with which the job goes back to its checkpoint. If the cluster is not complete,
// the members stay those of `before`: a scheduler process that takes over may find a free place,
// and no process that must be waited for.
View ViewOfRestart(const View& before, const Rendezvous& rendezvous, uint32_t replicas);

// Returns the view in which the workers are those of `rendezvous`, and all else stays. Requires:
// Rendezvous::FillWorkers(), and the number of workers is the same.
View ViewOfReplacements(const View& before, const Rendezvous& rendezvous);

// Returns the view after the number of members changed; moves as few rows as possible. Requires:
// `rendezvous` is complete.
View ViewOfNewNumbers(const View& before, const Rendezvous& rendezvous, uint32_t replicas);

// Returns the view of the same members in which they hold `shards`.
View ViewOfMovedShards(const View& before, ShardMap shards);

// Returns the view in which the remaining members hold all rows and as many copies as they can.
View ViewOfThoseLeft(const View& before, uint32_t replicas);

}  // namespace hdps
