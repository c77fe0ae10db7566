// How far a learning rate is at a step: a schedule as a function.
#pragma once

#include <cstdint>

namespace hdps {

struct OptimizerSpec;
struct ScheduleSpec;
struct TableSpec;

// What the learning rate is multiplied with in update `step`, counted from 1 over the whole job. A
// function of its arguments with the same bits on every machine, within 1e-14 of the formula:
//
//   while step <= warmup_steps:  step / warmup_steps
//   then, t = step - 1 - warmup_steps, p = min(t / decay_steps, 1):
//   constant     1
//   step         decay^floor(t / decay_steps)                        (torch: StepLR)
//   exponential  decay^(t / decay_steps)                             (ExponentialLR)
//   cosine       least + (1 - least) (1 + cos(pi p)) / 2             (CosineAnnealingLR)
//   polynomial   least + (1 - least) (1 - p)^power                   (PolynomialLR)
double ScheduleFactor(const ScheduleSpec& schedule, int64_t step);

// The optimizer of a table in update `step`, its learning rate times the schedule's factor and
// `rate`. FTRL's stays: its weights are a quotient by it, so that they would shrink with it.
OptimizerSpec OptimizerAt(const TableSpec& table, int64_t step, double rate);

// Whether a schedule moves the optimizer's learning rate.
bool FollowsSchedule(const OptimizerSpec& optimizer);

}  // namespace hdps
