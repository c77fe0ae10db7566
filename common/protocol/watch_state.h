// What a run remembers of its evaluations: in its checkpoints, and in the scheduler's state.
#pragma once

#include <cstdint>
#include <string>

#include "common/base/ids.h"
#include "common/base/status.h"

namespace hdps {

// One figure that is watched: its best value, and what has come since.
struct WatchState {
  std::string of;         // Which figure: "auc of the first set".
  Clock best_clock = -1;  // Of the evaluation with the best figure; -1: none had a figure.
  double best = 0;        // That figure.
  uint32_t since = 0;     // Evaluations behind it.
  Clock last_clock = -1;  // Of the last evaluation; -1: there was none.
  friend bool operator==(const WatchState&, const WatchState&) = default;
};

// All that later decisions of a run follow from.
struct Watched {
  WatchState best;        // For the checkpoint that is kept: better by however little.
  WatchState early_stop;  // By its min_delta.
  WatchState plateau;     // By its own; `since` also begins anew when the rates fall.
  double rate = 1;        // What the learning rates are multiplied with now.
  // Of the first evaluation set where `best` was; NaN where there was none.
  double best_auc = 0, best_logloss = 0;
  friend bool operator==(const Watched&, const Watched&) = default;
};

// As a JSON object, as manifests and the scheduler's state hold it. kCorruption: it is none.
std::string PrintWatched(const Watched& watched);
Result<Watched> ParseWatched(const std::string& json);

}  // namespace hdps
