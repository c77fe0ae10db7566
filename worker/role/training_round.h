// Runs the steps of one command to train: until its clock, the end of the epoch, or a pause.
#pragma once

#include <cstdint>
#include <optional>

#include "common/base/ids.h"
#include "common/base/status.h"
#include "common/platform/monotonic_clock.h"
#include "worker/cache/device_cache.h"
#include "worker/exchange/node_channel.h"
#include "worker/exchange/push_acks.h"
#include "worker/role/epoch_steps.h"
#include "worker/role/training_log.h"
#include "worker/step/step_report.h"
#include "worker/step/step_runner.h"

namespace hdps {

// Result of a round.
struct RoundOutcome {
  uint64_t examples = 0;
  double loss_sum = 0;
  uint64_t bad_rows = 0;
  LabelTally labels;
  bool end_of_epoch = false;
  // Of steps that a process which had the place before has pushed to some servers.
  uint64_t steps_again = 0, examples_again = 0;
};

// Invariant: `*clock` is the number of finished steps, even after an error. A pause ends the round
// after the step on which all workers that must agree have agreed.
//
// Belongs to the trainer's thread.
class TrainingRound {
 public:
  // Requires: all arguments outlive it. `cache` may be null and `after_step` empty.
  TrainingRound(NodeChannel& channel, MonotonicClock& time, EpochSteps& steps, StepRunner& runner,
                const DeviceCache* cache, const AfterStep& after_step, TrainingLog& log)
      : channel_(channel),
        time_(time),
        steps_(steps),
        runner_(runner),
        cache_(cache),
        after_step_(after_step),
        log_(log) {}

  // Runs the round. Requires: the steps are open at `*clock` of the command's epoch. `*pause`: a
  // kPause that has come, or comes meanwhile, and must be answered too; it outlives an error.
  // `taken_up`: where another process left the round; the counts go on from there.
  Result<RoundOutcome> Run(const Command& train, Clock* clock, std::optional<Command>* pause,
                           const PlaceStand& taken_up = {});

 private:
  // Waits for the next step of a followed log or a topic, or, where it may pause, until a pause
  // comes, which `*pause` then holds.
  Status AwaitRows(std::optional<Command>* pause, bool may_pause);

  NodeChannel& channel_;
  MonotonicClock& time_;
  EpochSteps& steps_;
  StepRunner& runner_;
  const DeviceCache* const cache_;
  const AfterStep& after_step_;
  TrainingLog& log_;
};

}  // namespace hdps
