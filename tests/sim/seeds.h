// Which seeds a simulation runs, and how to run one of them again.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace hdps::sim {

// 0 .. count - 1, times --sim_seeds_factor; only the one of --sim_seed if that is given.
std::vector<uint64_t> Seeds(uint64_t count);

// The command that repeats one seed of the test that is running.
std::string RepeatCommand(uint64_t seed);

}  // namespace hdps::sim
