// Picks those requests of a record that made the run what it is.
#pragma once

#include <cstdint>
#include <vector>

#include "common/base/ids.h"
#include "server/record/order_format.h"

namespace hdps {

// Returns the entries of one server before step `end`, in their order. A pull that was answered to
// nobody, because its worker paused and asked anew, is left out: the last one before the push is
// the one whose rows were used. `*again` counts requests of steps that were pushed already.
std::vector<OrderEntry> KeptOrder(const std::vector<OrderEntry>& all, Clock end, uint64_t* again);

// Returns the clock that a worker has reached by the order; `begin` if it has not moved.
Clock AdvancedTo(const std::vector<OrderEntry>& order, WorkerId worker, Clock begin);

}  // namespace hdps
