// Everything at once: a cluster of any shape in any weather, with several faults of any kind.
#pragma once

#include <cstdint>
#include <string>

#include "tests/sim/cluster.h"

namespace hdps::sim {

ClusterOptions DrawMixed(uint64_t seed);
// For people: the cluster, and a line for each fault.
std::string DescribeDraw(const ClusterOptions& options);

}  // namespace hdps::sim
