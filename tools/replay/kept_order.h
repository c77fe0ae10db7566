// Picks those requests of a record that made the run what it is.
#pragma once

#include <cstdint>
#include <vector>

#include "common/base/ids.h"
#include "server/record/order_format.h"

namespace hdps {

// Counts what KeptOrder() leaves out of what the run had used.
struct LeftOut {
  uint64_t again = 0;   // Requests of steps that were pushed already.
  uint64_t pushes = 0;  // Pushes from the end on that pulls before it had seen.
};

// Returns the entries of one server before step `end`, in their order. A worker that pauses, as for
// a save, discards rows it has prefetched and pulls them again. Of several pulls for one step only
// the last before the push was used; the others are left out. Adds to `*left_out`.
std::vector<OrderEntry> KeptOrder(const std::vector<OrderEntry>& all, Clock end, LeftOut* left_out);

// Returns the last step up to `end` at which a replay has the rows of the run, because no pull
// before it had seen a push from it on; `begin` if there is none. `orders` are what is kept of each
// server, beyond `end` too.
Clock ExactStep(const std::vector<std::vector<OrderEntry>>& orders, Clock begin, Clock end);

// Returns the first step from `begin` on of which the order has no push of the worker.
Clock PushedTo(const std::vector<OrderEntry>& order, WorkerId worker, Clock begin);
// Returns the clock that a worker has reached by the order; `begin` if it has not moved.
Clock AdvancedTo(const std::vector<OrderEntry>& order, WorkerId worker, Clock begin);

}  // namespace hdps
