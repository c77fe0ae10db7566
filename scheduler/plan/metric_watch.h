// What follows from a run's evaluations: which was the best, when to end, when rates fall.
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

// The figure of one of kMetricWords that a set, by its number in EvalSetsOf, has come to; NaN where
// it has none.
using FigureOfSet = std::function<double(size_t set, std::string_view metric)>;

// Follows one figure from evaluation to evaluation.
//
// Invariant: state() is a function of the figures and their clocks alone, so whoever begins with it
// decides as one that has seen all evaluations before.
class MetricWatch {
 public:
  // Goes on from `state`; one of another figure is not looked at. `set` is a number of EvalSetsOf.
  MetricWatch(const Job& job, const WatchSpec& spec, const WatchState& state);

  // The figures of the evaluation at `clock`; those of a clock that was taken are the same ones
  // again. True where the figure is the best so far. One that is undefined is not.
  bool Take(const FigureOfSet& figure_of, Clock clock);
  bool OutOf(uint32_t patience) const { return patience > 0 && state_.since >= patience; }
  void BeginAnew() { state_.since = 0; }
  const WatchState& state() const { return state_; }

  // "auc was no better than 0.912345, that of step 120, in 3 evaluations"
  std::string Describe() const;

 private:
  std::string metric_;
  double min_delta_;
  size_t set_ = 0;
  WatchState state_;
};

// The watches of a job.
class RunWatches {
 public:
  RunWatches(const Job& job, const Watched& state);

  struct Verdict {
    bool best = false;  // By however little.
    bool stop = false;  // Patience has run out.
    bool rate_fell = false;
    std::string why;  // Of the last two: what was seen, for people.
  };
  Verdict Take(const FigureOfSet& figure_of, Clock clock);
  // The evaluations so far end the job.
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
