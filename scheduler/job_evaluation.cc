// Evaluations of a job, and what follows from them.
#include <string>
#include <utility>

#include "common/base/show_number.h"
#include "scheduler/job_coordinator.h"
#include "scheduler/report/evaluation.h"

namespace hdps {

void JobCoordinator::KnowEpochRows() {
  if (job_->train.evals_per_epoch == 0) return;
  const uint64_t rows = answers_.at(parts_.members.workers().front()).rows;
  if (rows == 0 || rows == epoch_rows_) return;
  epoch_rows_ = rows;
  parts_.notice("an epoch has " + ShowWhole(static_cast<double>(rows)) + " rows; it is evaluated " +
                std::to_string(job_->train.evals_per_epoch) + " times");
}

JobPlan::Past JobCoordinator::PastOf(bool loaded) const {
  return {.loaded = loaded,
          .evaluated = watches_.state().best.last_clock,
          .out_of_patience = watches_.out_of_patience(),
          .epoch_rows = epoch_rows_};
}

Command JobCoordinator::EvaluateCommand() const {
  Command evaluate = MakeCommand(CommandKind::kEvaluate);
  if (!evaluations_.empty()) evaluate.eval_set = eval_sets_[evaluations_.size()].name;
  return evaluate;
}

void JobCoordinator::OnScores(PeerId from, const CommandDone& done, TimeMs now) {
  KnowWorker(done);
  if (evaluation_ == nullptr) return;
  evaluation_->Add(*parts_.members.WorkerRank(from), done);
  if (!done.more) return;
  Command command = EvaluateCommand();
  command.next = true;
  Send({from}, command, now);
}

void JobCoordinator::CompleteEvaluation(TimeMs now) {
  if (evaluations_.empty()) evaluated_labels_ = {};
  evaluations_.push_back(evaluation_->Finish());
  evaluated_labels_.Add(evaluation_->labels());
  evaluation_.reset();
  if (evaluations_.size() >= eval_sets_.size()) Judge(now);
}

void JobCoordinator::Judge(TimeMs now) {
  const std::vector<Evaluation> evaluations = std::exchange(evaluations_, {});
  const ProgressState state = progress();
  const std::string at = "epoch " + std::to_string(EpochOf(state, job_->train.epochs)) + ", step " +
                         std::to_string(state.clock);
  const bool rates_fall = job_->train.plateau.patience > 0;
  const std::optional<double> rate =
      rates_fall ? std::optional(watches_.state().rate) : std::nullopt;
  summary_.evaluation = evaluations.front();
  summary_.eval_sets.clear();
  for (size_t s = 0; s < evaluations.size(); ++s) {
    const std::string& name = eval_sets_[s].name;
    parts_.report.Evaluated(now, state, evaluations[s], s == 0 ? "" : name, rate);
    parts_.notice(at + (evaluations.size() == 1 ? ": " : ", " + name + ": ") +
                  Describe(evaluations[s]));
    if (evaluations.size() > 1) summary_.eval_sets.emplace_back(name, evaluations[s]);
  }
  Warn(labels_.Evaluated(evaluated_labels_));
  const RunWatches::Verdict verdict = watches_.Take(
      [&evaluations](size_t set, std::string_view metric) {
        return FigureOf(evaluations[set], metric);
      },
      state.clock);
  if (verdict.rate_fell && !verdict.stop && !plan_->finished()) {
    const double lower = watches_.state().rate;
    parts_.report.RateFell(now, state.clock, lower, verdict.why);
    parts_.notice("from here on the learning rates are multiplied with " + ShowNumber("%g", lower) +
                  ": " + verdict.why);
  }
  if (verdict.stop && !plan_->finished()) {
    parts_.notice("the job ends early: " + verdict.why);
  }
  plan_->Evaluated(verdict.best, verdict.stop);
  plan_->Done();
}

}  // namespace hdps
