// Reports each step, for callbacks that print, watch, or drive the run.
#pragma once

#include <cstdint>
#include <functional>

#include "common/base/ids.h"
#include "worker/step/stage.h"

namespace hdps {

struct StepReport {
  uint32_t epoch = 0;       // Number of the epoch, from 0.
  Clock clock = 0;          // Steps this worker has finished, this one included.
  uint64_t examples = 0;    // Examples of this worker.
  double loss_sum = 0;      // Sum of those examples' losses.
  StepTimes times = {};     // Times of the steps since the command to train, without total_ns.
  uint32_t rank = 0;        // Rank of this worker in the group that made the step.
  uint32_t group_size = 1;  // Number of workers in that group.
};

// Called on the worker's compute thread after each step. The next step begins when it returns, so a
// callback that waits drives the run step by step. It must return once the job is told to stop.
using AfterStep = std::function<void(const StepReport&)>;

}  // namespace hdps
