// Runs clusters of any shape with several faults of any kind at once.
#pragma once

#include <cstdint>
#include <string>

#include "tests/sim/cluster.h"

namespace hdps::sim {

ClusterOptions DrawMixed(uint64_t seed);
// Runs the cluster, and if it was told to stop or ended with its launcher, another one that
// continues with its files and must make all steps. Counts cover both.
Outcome RunToItsEnd(const ClusterOptions& options, FileSystem* files, TimeMs until = 600'000);
// Describes the cluster in one line, and each fault in another.
std::string DescribeDraw(const ClusterOptions& options);

}  // namespace hdps::sim
