// Learning rate schedules as functions of the step.
#pragma once

#include <cstdint>

namespace hdps {

struct OptimizerSpec;
struct ScheduleSpec;
struct TableSpec;

// Returns the factor on the learning rate in update `step`, counted from 1 over the whole job. The
// result depends only on the arguments, has the same bits on every machine, and is within 1e-14 of
// the formula:
//
//   while step <= warmup_steps:  step / warmup_steps
//   then, t = step - 1 - warmup_steps, p = min(t / decay_steps, 1):
//   constant     1
//   step         decay^floor(t / decay_steps)                        (torch: StepLR)
//   exponential  decay^(t / decay_steps)                             (ExponentialLR)
//   cosine       least + (1 - least) (1 + cos(pi p)) / 2             (CosineAnnealingLR)
//   polynomial   least + (1 - least) (1 - p)^power                   (PolynomialLR)
double ScheduleFactor(const ScheduleSpec& schedule, int64_t step);

// Returns the optimizer of a table in update `step`, with its learning rate times the schedule's
// factor and `rate`. FTRL's learning rate is not scaled: its weights are divided by it, so they
// would shrink with it.
OptimizerSpec OptimizerAt(const TableSpec& table, int64_t step, double rate,
                          int64_t steps_before = 0);

// Is true if schedules apply to the optimizer's learning rate.
bool FollowsSchedule(const OptimizerSpec& optimizer);

}  // namespace hdps
