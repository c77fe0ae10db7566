// The boundaries of a job, and what is due at each.
#include "scheduler/plan/job_plan.h"

#include <glog/logging.h>

#include <algorithm>

namespace hdps {

JobPlan::JobPlan(const Job& job, const JobPosition& start, bool loaded)
    : epochs_(job.train.epochs),
      max_steps_(static_cast<Clock>(job.train.max_steps)),
      save_every_(static_cast<Clock>(job.checkpoint.every_steps)),
      delta_every_(static_cast<Clock>(job.checkpoint.delta_every_steps)),
      eval_every_(job.data.eval.empty() ? 0 : static_cast<Clock>(job.train.eval_every_steps)),
      has_evaluation_(!job.data.eval.empty()),
      eval_each_epoch_(job.train.eval_each_epoch),
      allreduce_(job.parallel.dense_exchange == DenseExchange::kAllreduce),
      position_(start),
      saved_(loaded ? start.clock : -1) {
  if (finished()) PlanWhatIsDue(/*end_of_epoch=*/false);
}

JobPlan::JobPlan(const Job& job, const State& state) : JobPlan(job, state.position, false) {
  saved_ = state.saved;
  stopped_ = state.stopped;
  ending_ = state.ending;
  due_.assign(state.due.begin(), state.due.end());
}

JobPlan::State JobPlan::state() const {
  return {position_, saved_, stopped_, ending_, {due_.begin(), due_.end()}};
}

bool JobPlan::finished() const {
  return position_.epoch >= epochs_ || (max_steps_ > 0 && position_.clock >= max_steps_);
}

Clock JobPlan::until() const {
  Clock until = max_steps_ > 0 ? max_steps_ : kNoBoundary;
  for (const Clock every : {save_every_, delta_every_, eval_every_}) {
    if (every > 0) until = std::min(until, (position_.clock / every + 1) * every);
  }
  return until;
}

void JobPlan::Trained(Clock clock, bool end_of_epoch) {
  CHECK_GE(clock, position_.clock);
  CHECK(due_.empty());
  position_.clock = clock;
  if (end_of_epoch) {
    ++position_.epoch;
    position_.epoch_start = clock;
  }
  PlanWhatIsDue(end_of_epoch);
}

void JobPlan::PlanWhatIsDue(bool end_of_epoch) {
  ending_ = stopped_ || finished();
  // Who stops a job wants it to end soon; its model is evaluated when it goes on.
  const bool eval_due =
      (end_of_epoch && eval_each_epoch_) || (eval_every_ > 0 && position_.clock % eval_every_ == 0);
  const bool evaluate = has_evaluation_ && (finished() || (eval_due && !stopped_));
  const auto is_due = [this](Clock every) { return every > 0 && position_.clock % every == 0; };
  full_save_ = ending_ || is_due(save_every_);
  const bool save = (full_save_ || is_due(delta_every_)) && position_.clock != saved_;
  // Nothing was trained since a checkpoint was loaded: the servers have the dense rows.
  if (allreduce_ && (evaluate || save) && position_.clock != saved_) {
    due_.push_back(JobStep::kStoreDense);
  }
  if (evaluate) due_.push_back(JobStep::kEvaluate);
  if (ending_) due_.push_back(JobStep::kDigest);
  if (save) due_.push_back(JobStep::kSave);
  if (ending_) due_.push_back(JobStep::kFinish);
}

void JobPlan::Done(Outcome outcome) {
  CHECK(!due_.empty());
  if (due_.front() == JobStep::kSave && outcome == Outcome::kDone) saved_ = position_.clock;
  due_.pop_front();
  // Stopped while something else was going on: end here.
  if (due_.empty() && stopped_ && !ending_) PlanWhatIsDue(/*end_of_epoch=*/false);
}

void JobPlan::Stop() { stopped_ = true; }

}  // namespace hdps
