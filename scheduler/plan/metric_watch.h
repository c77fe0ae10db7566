// Acts on a run's evaluations: tracks the best one, ends the job early, and lowers learning rates.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "common/base/ids.h"
#include "common/job/spec/watch_spec.h"
#include "common/protocol/watch_state.h"

namespace hdps {

struct Job;

// Returns the value of a metric (of kMetricWords) for a set, by its number in EvalSetsOf; NaN if
// there is none.
using FigureOfSet = std::function<double(size_t set, std::string_view metric)>;

// Follows one figure from evaluation to evaluation.
//
// Invariant: state() depends only on the figures and their clocks, so a watch made from a state
// decides like one that has seen all evaluations before.
class MetricWatch {
 public:
  // Continues from `state`, unless that is the state of another figure. `set` is a number of
  // EvalSetsOf.
  MetricWatch(const Job& job, const WatchSpec& spec, const WatchState& state);

  // Takes the figures of the evaluation at `clock`; a clock that was already taken changes nothing.
  // Returns whether the figure is the best so far; an undefined one is not. `first` is the name of
  // the first figure, which a watch without a metric follows from then on.
  bool Take(const FigureOfSet& figure_of, Clock clock, const std::string& first);
  bool OutOf(uint32_t patience) const { return patience > 0 && state_.since >= patience; }
  void BeginAnew() { state_.since = 0; }
  const WatchState& state() const { return state_; }

  // "auc was no better than 0.912345, that of step 120, in 3 evaluations"
  std::string Describe() const;

 private:
  std::string metric_;  // Empty if it is not known before the first evaluation.
  std::string of_set_;  // " of the first set"
  double min_delta_;
  size_t set_ = 0;
  WatchState state_;
};

// The watches of a job.
class RunWatches {
 public:
  RunWatches(const Job& job, const Watched& state);

  struct Verdict {
    bool best = false;  // The best figure so far, by however little.
    bool stop = false;  // Patience has run out.
    bool rate_fell = false;
    std::string why;  // Reason of `stop` or `rate_fell`, for messages.
  };
  // `first`: name of the first figure, where the job does not say what figures there are.
  Verdict Take(const FigureOfSet& figure_of, Clock clock, const std::string& first = "");
  // Is true if the evaluations so far end the job.
  bool out_of_patience() const { return early_stop_.OutOf(early_stop_patience_); }
  std::string WhyEnded() const { return early_stop_.Describe(); }
  const Watched& state() const { return state_; }

 private:
  uint32_t early_stop_patience_;
  PlateauSpec plateau_spec_;
  MetricWatch best_, early_stop_, plateau_;
  Watched state_;
};

}  // namespace hdps
