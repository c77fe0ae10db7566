// Names the tables by which figures are told.
#pragma once

#include <string>
#include <vector>

namespace hdps {

struct Job;

// Returns the names of the tables whose rows are counted, in the job's order: all but the dense
// ones, whose rows are pieces of weights or the state of another program.
std::vector<std::string> FigureTables(const Job& job);

}  // namespace hdps
