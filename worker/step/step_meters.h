// Counts the steps of a worker, for whoever watches it.
#pragma once

#include <cstdint>

#include "common/telemetry/meters.h"
#include "worker/step/stage.h"

namespace hdps {

// Counts one step. `times`: its own times, total_ns included; `loss_sum`: the sum of the losses of
// its examples. A step without examples leaves the loss as it is.
void CountStep(const StepTimes& times, uint64_t examples, double loss_sum, Meters* meters);

}  // namespace hdps
