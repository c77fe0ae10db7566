// Chooses the seeds of a simulation, and prints how to repeat one.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace hdps::sim {

// Returns the seeds of a test that has `count` of them, from 0: a third, another one each day; all
// of them, times --sim_seeds_factor, if HDPS_TESTS=all or a factor is given; only --sim_seed if
// that is given.
std::vector<uint64_t> Seeds(uint64_t count);

// Returns the share of one of `parts` tests in `count` seeds, or in as many as the environment
// variable HDPS_SIM_SEEDS gives, all of them.
std::vector<uint64_t> SeedsOfPart(uint64_t count, uint64_t part, uint64_t parts);

// Returns whether a planted fault was noticed often enough: in half of the runs, or in two of five
// if they are a third of the seeds. A single repeated seed says nothing about that.
bool NoticedOften(uint64_t noticed, uint64_t runs);

// Returns the command that repeats one seed of the running test.
std::string RepeatCommand(uint64_t seed);

}  // namespace hdps::sim
