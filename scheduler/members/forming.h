// The views that a job can have next: the first, and those after losses and other numbers.
#pragma once

#include <cstdint>

#include "common/base/ids.h"

namespace hdps {

struct View;
class Rendezvous;

inline constexpr ViewId kFirstView{1};

// Of the cluster that is complete for the first time. Requires: `rendezvous` is complete.
View FirstView(const Rendezvous& rendezvous, uint32_t replicas);

// The job goes back to its checkpoint with those that are here. Without a complete cluster the
// members stay those of `before`: another process of the scheduler may find a free place, and
// nobody who has to wait for it.
View ViewOfRestart(const View& before, const Rendezvous& rendezvous, uint32_t replicas);

// The numbers of members have changed: rows move as few as that takes. Requires: `rendezvous` is
// complete.
View ViewOfNewNumbers(const View& before, const Rendezvous& rendezvous, uint32_t replicas);

// Those that are left hold the rows and make all copies that they can.
View ViewOfThoseLeft(const View& before, uint32_t replicas);

}  // namespace hdps
