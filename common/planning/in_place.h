// Tells which jobs go on when a worker is lost without anybody going back to a checkpoint.
#pragma once

#include <string>

namespace hdps {

struct Job;

// Returns why the replacement of a lost worker of this job cannot take up its step, such as "..
// keeps rows of its own", so that all go back to a checkpoint; empty if it can: all that the lost
// process knew is at the servers, or follows from the data's position.
std::string WhyNotInPlace(const Job& job);

}  // namespace hdps
