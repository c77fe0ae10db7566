// Reports a worker's training: to the scheduler with each step, to its log with each round.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "common/base/ids.h"
#include "kernels/dense_ops.h"
#include "worker/cache/device_cache.h"
#include "worker/collective/collective.h"
#include "worker/step/stage.h"
#include "worker/step/step_runner.h"

namespace hdps {

struct Heartbeat;

// Invariant: examples and losses are counted since the current state was begun or loaded, times
// since the process began.
//
// Belongs to the trainer's thread.
class TrainingLog {
 public:
  // Lets PrintLoss() print every `every`-th step with `print`; 0: none.
  void PrintLosses(uint64_t every, std::function<void(const std::string&)> print) {
    print_every_ = every;
    print_ = std::move(print);
  }
  // Resets the counts for a new state. Must not be called for a state that goes on.
  void BeginState();
  // Adds a finished step, and returns what heartbeats report from now on.
  Heartbeat AddStep(const StepOutcome& step, Clock clock, double epoch_progress);
  // Returns what heartbeats report of a worker that takes up a step at `clock`.
  Heartbeat ReportAt(Clock clock) const;
  // Prints the mean loss of step number `clock`, the `in_epoch`-th of epoch `epoch` (from 0), if
  // its turn has come. A step without examples has none.
  void PrintLoss(const StepOutcome& step, Clock clock, uint32_t epoch, Clock in_epoch) const;
  // Logs the times of a finished command. `cache`: null: no rows are cached.
  void EndRound(uint32_t epoch, Clock clock, const StepTimes& times, const DenseOps& ops,
                const DeviceCache* cache);
  // Times of all rounds.
  const StepTimes& times() const { return times_; }

 private:
  void LogTraffic(const DenseOps& ops);

  uint64_t examples_ = 0;
  double loss_sum_ = 0;
  double epoch_progress_ = 0;
  StepTimes times_;
  uint64_t print_every_ = 0;
  std::function<void(const std::string&)> print_;
  DeviceTraffic logged_;  // Traffic over the bus that has been logged.
};

// Converts the counts of collectives into those of an answer.
CollectiveTally TallyOf(const CollectiveCounts& counts, uint64_t state_bytes);

}  // namespace hdps
