// Which seeds a simulation runs, and how to run one of them again.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace hdps::sim {

// 0 .. count - 1, times --sim_seeds_factor; only the one of --sim_seed if that is given.
std::vector<uint64_t> Seeds(uint64_t count);

// Of so many seeds, or as many as the environment variable HDPS_SIM_SEEDS says, those of one of
// `parts` tests that share them.
std::vector<uint64_t> SeedsOfPart(uint64_t count, uint64_t part, uint64_t parts);

// The command that repeats one seed of the test that is running.
std::string RepeatCommand(uint64_t seed);

}  // namespace hdps::sim
