// The state of a run's evaluations, as checkpoints and the scheduler's state hold it.
#pragma once

#include <cstdint>
#include <string>

#include "common/base/ids.h"
#include "common/base/status.h"

namespace hdps {

// A figure that is watched: its best value, and what has come since.
struct WatchState {
  std::string of;         // Name of the figure: "auc of the first set".
  Clock best_clock = -1;  // Clock of the evaluation with the best figure; -1 if none had one.
  double best = 0;        // The best figure.
  uint32_t since = 0;     // Number of evaluations after it.
  Clock last_clock = -1;  // Clock of the last evaluation; -1 if there was none.
  friend bool operator==(const WatchState&, const WatchState&) = default;
};

// Everything that later decisions of a run depend on.
struct Watched {
  WatchState best;        // Chooses the checkpoint to keep: any improvement counts.
  WatchState early_stop;  // Ends the job: improvements count from its min_delta.
  // Lowers the rates, with its own min_delta; `since` also restarts when they fall.
  WatchState plateau;
  double rate = 1;  // Current factor on the learning rates.
  // Figures of the first evaluation set at `best`; NaN if there were none.
  double best_auc = 0, best_logloss = 0;
  friend bool operator==(const Watched&, const Watched&) = default;
};

// Print and parse the state as a JSON object. Errors: kCorruption if the text is not one.
std::string PrintWatched(const Watched& watched);
Result<Watched> ParseWatched(const std::string& json);

}  // namespace hdps
