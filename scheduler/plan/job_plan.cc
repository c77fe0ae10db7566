// Computes the boundaries of a job, and what is due at each.
#include "scheduler/plan/job_plan.h"

#include <glog/logging.h>

#include <algorithm>

#include "common/job/eval_sets.h"
#include "common/job/job_facts.h"
#include "common/job/job_spec.h"
#include "common/job/spec/checkpoint_spec.h"
#include "common/job/spec/parallel_spec.h"
#include "common/job/spec/train_spec.h"

namespace hdps {
namespace {

bool HasEvaluation(const Job& job) {
  return IsTablesJob(job) ? job.train.eval_every_steps > 0 : !EvalSetsOf(job.data).empty();
}

Clock StepsOf(const Job& job, uint64_t rows) {
  return static_cast<Clock>((rows + job.train.batch_size - 1) / job.train.batch_size);
}

}  // namespace

JobPlan::JobPlan(const Job& job, const JobPosition& start, const Past& past)
    : epochs_(job.train.epochs),
      max_steps_(static_cast<Clock>(job.train.max_steps)),
      save_every_(static_cast<Clock>(job.checkpoint.every_steps)),
      delta_every_(static_cast<Clock>(job.checkpoint.delta_every_steps)),
      eval_every_(HasEvaluation(job) ? static_cast<Clock>(job.train.eval_every_steps) : 0),
      progressive_every_(StepsOf(job, job.train.progressive.window)),
      saves_deltas_(job.checkpoint.saves_deltas()),
      save_epochs_(job.checkpoint.every_epochs),
      has_evaluation_(HasEvaluation(job)),
      eval_by_epochs_(!IsTablesJob(job)),
      eval_each_epoch_(eval_by_epochs_ &&
                       (job.train.eval_each_epoch || job.train.evals_per_epoch > 0)),
      keep_best_(job.checkpoint.keep_best),
      programs_have_model_(IsTablesJob(job)),
      stores_dense_(job.parallel.dense_exchange == DenseExchange::kAllreduce ||
                    programs_have_model_),
      epoch_parts_(has_evaluation_ ? job.train.evals_per_epoch : 0),
      epoch_steps_(StepsOf(job, past.epoch_rows)),
      position_(start),
      saved_(past.loaded ? start.clock : -1),
      stopped_early_(past.out_of_patience) {
  if (finished()) {
    PlanWhatIsDue(/*end_of_epoch=*/false);
    return;
  }
  // A stopped job did not wait for the evaluation that was due there.
  const bool not_yet = past.evaluated >= 0 && past.evaluated < start.clock;
  const bool end_of_epoch = start.epoch > 0 && start.clock == start.epoch_start;
  if (not_yet && EvaluationIsDue(end_of_epoch)) due_.push_back(JobStep::kEvaluate);
}

JobPlan::JobPlan(const Job& job, const State& state, uint64_t epoch_rows)
    : JobPlan(job, state.position, Past{.epoch_rows = epoch_rows}) {
  saved_ = state.saved;
  stopped_ = state.stopped;
  stopped_early_ = state.stopped_early;
  ending_ = state.ending;
  full_save_ = state.full_save;
  due_.assign(state.due.begin(), state.due.end());
}

JobPlan::State JobPlan::state() const {
  return {
      position_, saved_, stopped_, ending_, stopped_early_, full_save_, {due_.begin(), due_.end()}};
}

bool JobPlan::finished() const {
  return stopped_early_ || position_.epoch >= epochs_ ||
         (max_steps_ > 0 && position_.clock >= max_steps_);
}

Clock JobPlan::until() const {
  Clock until = max_steps_ > 0 ? max_steps_ : kNoBoundary;
  for (const Clock every : {save_every_, delta_every_, eval_every_, progressive_every_}) {
    if (every > 0) until = std::min(until, (position_.clock / every + 1) * every);
  }
  for (uint32_t part = 1; part < epoch_parts_; ++part) {
    if (EndOfPart(part) <= position_.clock) continue;
    return std::min(until, EndOfPart(part));
  }
  return until;
}

Clock JobPlan::EndOfPart(uint32_t part) const {
  return position_.epoch_start + epoch_steps_ * part / epoch_parts_;
}

bool JobPlan::EvaluationIsDue(bool end_of_epoch) const {
  if (!has_evaluation_) return false;
  if (end_of_epoch && eval_each_epoch_) return true;
  if (eval_every_ > 0 && position_.clock % eval_every_ == 0) return true;
  if (position_.clock == position_.epoch_start) return false;
  for (uint32_t part = 1; part < epoch_parts_; ++part) {
    if (EndOfPart(part) == position_.clock) return true;
  }
  return false;
}

void JobPlan::Trained(Clock clock, bool end_of_epoch, WantedSave save) {
  CHECK_GE(clock, position_.clock);
  CHECK(due_.empty());
  position_.clock = clock;
  if (end_of_epoch) {
    ++position_.epoch;
    position_.epoch_start = clock;
  }
  PlanWhatIsDue(end_of_epoch, save);
}

void JobPlan::PlanWhatIsDue(bool end_of_epoch, WantedSave wanted) {
  ending_ = stopped_ || finished();
  // A stopped job is to end soon; its model is evaluated when it goes on. An evaluation by steps
  // may have come just at the end of the epoch.
  const bool evaluate =
      evaluated_ != position_.clock && ((has_evaluation_ && eval_by_epochs_ && finished()) ||
                                        (EvaluationIsDue(end_of_epoch) && !stopped_));
  const auto is_due = [this](Clock every) { return every > 0 && position_.clock % every == 0; };
  const bool epochs_due = end_of_epoch && save_epochs_ > 0 && position_.epoch % save_epochs_ == 0;
  full_save_ = ending_ || is_due(save_every_) || epochs_due || wanted == WantedSave::kAll;
  const bool any_save = full_save_ || is_due(delta_every_) || wanted == WantedSave::kChanges;
  const bool save = any_save && (position_.clock != saved_ || MakesLastFull());
  // If nothing was trained since a checkpoint was loaded, the servers have the dense rows. Programs
  // that have finished left marks of it there, which go with their states.
  const bool drops_marks = ending_ && programs_have_model_;
  if (stores_dense_ && (((evaluate || save) && position_.clock != saved_) || drops_marks)) {
    due_.push_back(JobStep::kStoreDense);
  }
  if (evaluate) due_.push_back(JobStep::kEvaluate);
  if (ending_) due_.push_back(JobStep::kDigest);
  if (save) {
    due_.push_back(JobStep::kSave);
    planned_save_ = position_.clock;
  }
  if (ending_) due_.push_back(JobStep::kFinish);
}

void JobPlan::Evaluated(bool best, bool enough) {
  CHECK(next() == JobStep::kEvaluate);
  evaluated_ = position_.clock;
  if (enough && !ending_) {
    stopped_early_ = ending_ = true;
    due_ = {JobStep::kEvaluate, JobStep::kDigest, JobStep::kFinish};
  }
  const bool keep = best && keep_best_ && position_.clock != saved_;
  const auto save = std::ranges::find(due_, JobStep::kSave);
  if (stopped_early_ ? position_.clock != saved_ || MakesLastFull() : keep) {
    full_save_ = true;
    planned_save_ = position_.clock;
    if (save == due_.end()) due_.insert(due_.begin() + (ending_ ? 2 : 1), JobStep::kSave);
  }
}

void JobPlan::Done(Outcome outcome) {
  CHECK(!due_.empty());
  if (due_.front() == JobStep::kSave && outcome == Outcome::kDone) saved_ = position_.clock;
  due_.pop_front();
  // A stop came while something else was going on: end here.
  if (due_.empty() && stopped_ && !ending_) PlanWhatIsDue(/*end_of_epoch=*/false);
}

void JobPlan::SaveHere() {
  CHECK(due_.empty());
  PlanWhatIsDue(/*end_of_epoch=*/false, saves_deltas_ ? WantedSave::kChanges : WantedSave::kAll);
}

void JobPlan::Stop() { stopped_ = true; }

void JobPlan::ForgetStop() {
  stopped_ = false;
  if (finished()) return;
  ending_ = false;
  std::erase_if(due_,
                [](JobStep step) { return step == JobStep::kDigest || step == JobStep::kFinish; });
}

}  // namespace hdps
