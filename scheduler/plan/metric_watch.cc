// Compares figures, and counts evaluations without an improvement.
#include "scheduler/plan/metric_watch.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "common/base/show_number.h"
#include "common/job/eval_sets.h"
#include "common/job/job_spec.h"
#include "common/job/spec/data_spec.h"
#include "common/job/spec/train_spec.h"
#include "common/metrics/metric.h"

namespace hdps {
namespace {

// Returns the figure by which the best checkpoint is chosen: that of the early stop, if there is
// one.
WatchSpec BestSpec(const Job& job) {
  WatchSpec spec;
  spec.metric = UsualMetric(job);
  if (job.train.early_stop.patience > 0) {
    spec.metric = job.train.early_stop.metric;
    spec.set = job.train.early_stop.set;
  }
  return spec;
}

size_t NumberOfSet(const Job& job, const std::string& name) {
  const std::vector<EvalSet> sets = EvalSetsOf(job.data);
  const auto found = std::ranges::find(sets, name, &EvalSet::name);
  return found == sets.end() ? 0 : static_cast<size_t>(found - sets.begin());
}

}  // namespace

MetricWatch::MetricWatch(const Job& job, const WatchSpec& spec, const WatchState& state)
    : metric_(spec.metric), min_delta_(spec.min_delta), set_(NumberOfSet(job, spec.set)) {
  of_set_ = " of " + (spec.set.empty() ? "the first set" : spec.set);
  if (metric_.empty() && state.of.ends_with(of_set_)) {
    metric_ = state.of.substr(0, state.of.size() - of_set_.size());
  }
  const std::string of = metric_ + of_set_;
  if (state.of == of) state_ = state;
  state_.of = of;
}

bool MetricWatch::Take(const FigureOfSet& figure_of, Clock clock, const std::string& first) {
  if (clock <= state_.last_clock) return false;
  if (metric_.empty()) {
    metric_ = first;
    state_.of = metric_ + of_set_;
  }
  state_.last_clock = clock;
  const double figure = figure_of(set_, metric_);
  const bool higher = HigherIsBetter(metric_);
  const double gain = higher ? figure - state_.best : state_.best - figure;
  const bool better = std::isfinite(figure) && (state_.best_clock < 0 || gain > min_delta_);
  if (!better) {
    ++state_.since;
    return false;
  }
  state_.best = figure;
  state_.best_clock = clock;
  state_.since = 0;
  return true;
}

std::string MetricWatch::Describe() const {
  const std::string in =
      " in " + std::to_string(state_.since) + " evaluation" + (state_.since == 1 ? "" : "s");
  if (state_.best_clock < 0) return metric_ + " had no value" + in;
  return metric_ + " was no better than " + ShowNumber("%.6f", state_.best) + ", that of step " +
         std::to_string(state_.best_clock) + "," + in;
}

RunWatches::RunWatches(const Job& job, const Watched& state)
    : early_stop_patience_(job.train.early_stop.patience),
      plateau_spec_(job.train.plateau),
      best_(job, BestSpec(job), state.best),
      early_stop_(job, job.train.early_stop, state.early_stop),
      plateau_(job, job.train.plateau, state.plateau),
      state_(state) {
  state_.best = best_.state();
  state_.early_stop = early_stop_.state();
  state_.plateau = plateau_.state();
}

RunWatches::Verdict RunWatches::Take(const FigureOfSet& figure_of, Clock clock,
                                     const std::string& first) {
  Verdict verdict;
  verdict.best = best_.Take(figure_of, clock, first);
  if (verdict.best) {
    state_.best_auc = figure_of(0, "auc");
    state_.best_logloss = figure_of(0, "logloss");
  }
  early_stop_.Take(figure_of, clock, first);
  verdict.stop = out_of_patience();
  plateau_.Take(figure_of, clock, first);
  if (plateau_.OutOf(plateau_spec_.patience)) {
    const double lower = std::max(state_.rate * plateau_spec_.factor, plateau_spec_.least);
    verdict.rate_fell = lower < state_.rate;
    if (verdict.rate_fell) {
      state_.rate = lower;
      verdict.why = plateau_.Describe();
    }
    plateau_.BeginAnew();
  }
  if (verdict.stop) verdict.why = WhyEnded();
  state_.best = best_.state();
  state_.early_stop = early_stop_.state();
  state_.plateau = plateau_.state();
  return verdict;
}

}  // namespace hdps
