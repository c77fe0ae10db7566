// Chooses the seeds of a simulation, and prints how to repeat one.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace hdps::sim {

// Returns 0 .. count - 1, with count times --sim_seeds_factor; only --sim_seed if that is given.
std::vector<uint64_t> Seeds(uint64_t count);

// Returns the share of one of `parts` tests in `count` seeds, or in as many as the environment
// variable HDPS_SIM_SEEDS gives.
std::vector<uint64_t> SeedsOfPart(uint64_t count, uint64_t part, uint64_t parts);

// Returns the command that repeats one seed of the running test.
std::string RepeatCommand(uint64_t seed);

}  // namespace hdps::sim
