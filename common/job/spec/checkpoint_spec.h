// The settings of checkpoints: when a job saves them, and which are kept.
#pragma once

#include <cstdint>
#include <string>

namespace hdps {

struct CheckpointSpec {
  uint64_t every_steps = 0;  // 0 saves only at the end and when the job is told to stop.
  // Interval of deltas between full checkpoints. A delta holds what changed since the one before;
  // 0 saves none.
  uint64_t delta_every_steps = 0;
  // The same by the scheduler's clock; 0: not. Whichever of steps and seconds comes first counts.
  uint64_t every_seconds = 0, delta_every_seconds = 0;
  uint32_t every_epochs = 0;  // 0 saves none at the end of an epoch.
  uint32_t keep = 2;
  bool keep_best = true;  // Also keep the one with the best evaluation.
  // Time for which the last save of a run, or the writing of rows to a full disk, is retried.
  uint32_t retry_s = 600;
  std::string copy_to;          // Folder of rclone's for copies, REMOTE:PATH; empty: none are made.
  uint32_t copy_wait_s = 3600;  // Time for which the end of a run waits for them.

  bool saves_deltas() const { return delta_every_steps > 0 || delta_every_seconds > 0; }
};

}  // namespace hdps
