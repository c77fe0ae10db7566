// Tells which jobs go on when a worker is lost without anybody going back to a checkpoint.
#pragma once

#include <string>

#include "common/base/ids.h"

namespace hdps {

struct Job;

// Returns why the replacement of a lost worker of this job cannot take up its step, such as "..
// keeps rows of its own", so that all go back to a checkpoint; empty if it can: all that the lost
// process knew is at the servers, or follows from the data's position.
std::string WhyNotInPlace(const Job& job);

// Returns how many steps before the one that it has announced a worker may make again, in a job of
// WhyNotInPlace() "". 0: none, and only who takes a lost worker's place makes steps again. Under
// allreduce it is 2, and all make their step again. A lost worker may have had the sum of a step
// that no other has; its rows of that step and of the next were pushed, and announced.
Clock StepsTakenUp(const Job& job);

}  // namespace hdps
