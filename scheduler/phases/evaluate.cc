// Runs the evaluations of a job and acts on them.
#include "scheduler/phases/evaluate.h"

#include <optional>
#include <string>
#include <string_view>

#include "common/base/show_number.h"
#include "common/job/job_facts.h"
#include "common/job/job_spec.h"
#include "common/job/spec/train_spec.h"
#include "scheduler/members/membership.h"
#include "scheduler/phases/worker_facts.h"

namespace hdps {

EvaluatePhase::EvaluatePhase(const PhaseParts& parts)
    : Phase(parts),
      sets_(IsTablesJob(parts.job) ? std::vector<EvalSet>{{kEvalName, {}}}
                                   : EvalSetsOf(parts.job.data)),
      by_program_(IsTablesJob(parts.job)) {}

Next EvaluatePhase::Begin(const Turn& turn) {
  sums_ = std::make_unique<EvaluationSums>(parts_.job, parts_.files, parts_.out);
  turn.orders.Send(parts_.members.workers(), CommandOfSet());
  return Next::Wait();
}

Command EvaluatePhase::CommandOfSet() const {
  Command evaluate = MakeCommand(CommandKind::kEvaluate);
  if (!evaluations_.empty()) evaluate.eval_set = sets_[evaluations_.size()].name;
  return evaluate;
}

// Takes some scores of a worker, and asks it for the next ones.
Next EvaluatePhase::OnAnswer(const Answer& answer, const Turn& turn) {
  const uint32_t rank = *parts_.members.WorkerRank(answer.from);
  if (by_program_) {
    if (rank == 0) reported_ = answer.done;
    return Next::Wait();
  }
  sums_->Add(rank, answer.done);
  if (answer.done.more) {
    Command command = CommandOfSet();
    command.next = true;
    turn.orders.Send({answer.from}, command);
  }
  return Next::Wait();
}

Next EvaluatePhase::OnAllAnswered(const Turn& turn) {
  evaluations_.push_back(by_program_ ? EvaluationOfProgram(reported_) : sums_->Finish());
  if (by_program_ && !HasFigures()) {
    turn.job.plan->Evaluated(/*best=*/false, /*enough=*/false);
    turn.job.plan->Done();
    return Next::Done();
  }
  labels_.Add(sums_->labels());
  sums_.reset();
  if (evaluations_.size() < sets_.size()) return Next::Again(JobPhase::kEvaluate);
  Report(turn);
  parts_.facts.KnowLabelsEvaluated(labels_);
  ApplyEvaluation(turn);
  return Next::Done();
}

bool EvaluatePhase::HasFigures() const {
  const std::vector<Figure>& figures = evaluations_.front().figures;
  std::string known;
  for (const Figure& figure : figures) known += (known.empty() ? "" : ", ") + figure.word;
  const auto warn = [&](const char* place, const WatchSpec& watch) {
    if (watch.patience == 0 || watch.metric.empty()) return;
    if (FindFigure(figures, watch.metric) != nullptr) return;
    parts_.facts.WarnOnce(
        std::string(place) + ".metric: the program of worker 0 reports no figure " + "\"" +
        watch.metric + "\"; there " + (figures.size() == 1 ? "is " : "are ") + known);
  };
  if (figures.empty()) {
    parts_.facts.WarnOnce(
        "train.eval_every_steps: the program of worker 0 has reported no figure when an evaluation "
        "was due, or has no more examples");
    return false;
  }
  warn("train.early_stop", parts_.job.train.early_stop);
  warn("train.plateau", parts_.job.train.plateau);
  return true;
}

void EvaluatePhase::Report(const Turn& turn) const {
  const ProgressState state = turn.job.Progress(parts_.job, parts_.members);
  const std::string epoch =
      "epoch " + std::to_string(EpochOf(state, parts_.job.train.epochs)) + ", ";
  const std::string at = (by_program_ ? "" : epoch) + "step " + std::to_string(state.clock);
  const bool rates_fall = parts_.job.train.plateau.patience > 0;
  const std::optional<double> rate =
      rates_fall ? std::optional(turn.job.watches.state().rate) : std::nullopt;
  RunSummary& summary = turn.job.record.summary;
  summary.evaluation = evaluations_.front();
  summary.eval_sets.clear();
  for (size_t s = 0; s < evaluations_.size(); ++s) {
    const std::string& name = sets_[s].name;
    parts_.report.Evaluated(turn.now, state, evaluations_[s], s == 0 ? "" : name, rate);
    parts_.notice(at + (evaluations_.size() == 1 ? ": " : ", " + name + ": ") +
                  Describe(evaluations_[s]));
    if (evaluations_.size() > 1) summary.eval_sets.emplace_back(name, evaluations_[s]);
  }
}

void EvaluatePhase::ApplyEvaluation(const Turn& turn) const {
  JobPlan& plan = *turn.job.plan;
  RunWatches& watches = turn.job.watches;
  const Clock clock = plan.position().clock;
  const RunWatches::Verdict verdict = watches.Take(
      [this](size_t set, std::string_view metric) { return FigureOf(evaluations_[set], metric); },
      clock, by_program_ ? evaluations_.front().figures.front().word : "");
  if (verdict.rate_fell && !verdict.stop && !plan.finished()) {
    const double lower = watches.state().rate;
    parts_.report.RateFell(turn.now, clock, lower, verdict.why);
    parts_.notice("from here on the learning rates are multiplied with " + ShowNumber("%g", lower) +
                  ": " + verdict.why);
  }
  if (verdict.stop && !plan.finished()) parts_.notice("the job ends early: " + verdict.why);
  plan.Evaluated(verdict.best, verdict.stop);
  plan.Done();
}

}  // namespace hdps
