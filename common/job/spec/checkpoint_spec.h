// When a job saves checkpoints, and which of them stay.
#pragma once

#include <cstdint>

namespace hdps {

struct CheckpointSpec {
  uint64_t every_steps = 0;  // 0 = only at the end and when told to stop.
  // Between those, so often a delta: what changed since the last; 0 = none.
  uint64_t delta_every_steps = 0;
  uint32_t every_epochs = 0;  // 0: none because of an epoch's end.
  uint32_t keep = 2;
  bool keep_best = true;   // The one with the best evaluation stays beside them.
  uint32_t retry_s = 600;  // The last save of a run, while it fails; rows for a full disk.
};

}  // namespace hdps
