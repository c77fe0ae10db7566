// Sums values in any memory by the calls of a library: see CollectiveOptions::by_library.
#pragma once

#include <cstddef>
#include <span>

#include "common/base/status.h"
#include "worker/collective/rank_transport.h"

namespace hdps {

// Both require that transport.library() is not null, and are called by all its ranks.

// Sums lists of floats or halves in place, on every rank; none is empty.
Status AllReduceByLibrary(RankTransport& transport, std::span<const ReducedValues> lists);
// As Collective::ReduceScatter, which has the meaning of the arguments.
Status ReduceScatterByLibrary(RankTransport& transport, const ReducedValues& values,
                              std::span<const size_t> counts, void* mine);

}  // namespace hdps
