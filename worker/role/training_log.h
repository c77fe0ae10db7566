// What a worker tells of its training: to the scheduler with each step, to its log with each round.
#pragma once

#include <cstdint>

#include "common/base/ids.h"
#include "kernels/dense_ops.h"
#include "worker/cache/device_cache.h"
#include "worker/collective/collective.h"
#include "worker/step/stage.h"
#include "worker/step/step_runner.h"

namespace hdps {

struct Heartbeat;

// Invariant: examples and losses are those since the state at hand was begun or loaded, times those
// since the process began.
//
// Belongs to the trainer's thread.
class TrainingLog {
 public:
  // Another state was begun; one that goes on keeps what was counted.
  void BeginState();
  // A step is done, the clock of this worker with it; what heartbeats are to say from now on.
  Heartbeat AddStep(const StepOutcome& step, Clock clock, double epoch_progress);
  // The steps of a command are done, and took these times. `cache`: null: no rows are kept here.
  void EndRound(uint32_t epoch, Clock clock, const StepTimes& times, const DenseOps& ops,
                const DeviceCache* cache);
  // Of all rounds.
  const StepTimes& times() const { return times_; }

 private:
  void LogTraffic(const DenseOps& ops);

  uint64_t examples_ = 0;
  double loss_sum_ = 0;
  StepTimes times_;
  DeviceTraffic logged_;  // What had crossed the bus by then.
};

// What the calls of groups moved, as an answer tells it.
CollectiveTally TallyOf(const CollectiveCounts& counts, uint64_t state_bytes);

}  // namespace hdps
