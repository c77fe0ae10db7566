// Everything at once: a cluster of any shape in any weather, with several faults of any kind.
#pragma once

#include <cstdint>
#include <string>

#include "tests/sim/cluster.h"

namespace hdps::sim {

ClusterOptions DrawMixed(uint64_t seed);
// Runs the cluster, and where that was told to stop, or ended with its launcher, another one that
// goes on with its files and has to make all of the steps. Counts are of both.
Outcome RunToItsEnd(const ClusterOptions& options, FileSystem* files, TimeMs until = 600'000);
// For people: the cluster, and a line for each fault.
std::string DescribeDraw(const ClusterOptions& options);

}  // namespace hdps::sim
