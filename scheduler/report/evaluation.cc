// Merges the scores of all workers, and computes the figures.
#include "scheduler/report/evaluation.h"

#include <cmath>
#include <limits>
#include <utility>

#include "common/base/show_number.h"
#include "common/job/job_facts.h"
#include "common/job/job_spec.h"
#include "common/protocol/command_messages.h"

namespace hdps {
namespace {

constexpr double kNoFigure = std::numeric_limits<double>::quiet_NaN();

// Returns the metrics of train.progressive: for probabilities auc, logloss and calibration, else
// those of evaluations.
std::vector<TaskMetrics> ProgressiveMetricsOf(const Job& job) {
  std::vector<TaskMetrics> metrics = MetricsOf(job);
  for (TaskMetrics& task : metrics) {
    if (task.kind == ScoreKind::kProbability) task.words = {"auc", "logloss", "calibration"};
  }
  return metrics;
}

std::string Figure6(double value) { return ShowNumber("%.6f", value); }

}  // namespace

void FillKnownFigures(Evaluation* evaluation) {
  const Figure* const auc = FindFigure(evaluation->figures, "auc");
  const Figure* const logloss = FindFigure(evaluation->figures, "logloss");
  evaluation->auc = auc == nullptr ? kNoFigure : auc->value;
  evaluation->logloss = logloss == nullptr ? kNoFigure : logloss->value;
  if (auc != nullptr && !std::isfinite(auc->value)) evaluation->no_auc = auc->about;
}

Evaluation EvaluationOfProgram(const CommandDone& done) {
  Evaluation evaluation;
  evaluation.by_program = true;
  for (const NamedFigure& figure : done.figures) {
    evaluation.figures.push_back({figure.name, figure.value});
  }
  FillKnownFigures(&evaluation);
  return evaluation;
}

std::vector<Figure> FiguresWithout(const std::vector<TaskMetrics>& metrics,
                                   const std::string& trouble) {
  std::vector<Figure> figures;
  for (const TaskMetrics& task : metrics) {
    for (const std::string& word : task.words) {
      figures.push_back({task.task.empty() ? word : task.task + "." + word, kNoFigure,
                         "scores could not be kept: " + trouble});
    }
  }
  return figures;
}

EvaluationSums::EvaluationSums(const Job& job, FileSystem& files, const std::string& out)
    : book_(files, JoinPath(out, "evaluation"), MetricsOf(job)), metrics_(MetricsOf(job)) {}

void EvaluationSums::Add(uint32_t rank, const CommandDone& done) {
  examples_ += done.examples;
  parts_[rank].loss += done.loss_sum;
  parts_[rank].weight += done.weight_sum;
  labels_.Add(done.label_tally);
  if (!trouble_.ok()) return;
  trouble_ = book_.Add(done.scores.As<float>(), done.labels.As<float>(), done.weights.As<float>(),
                       done.groups.As<Key>());
}

Evaluation EvaluationSums::Finish() {
  Part all;
  for (const auto& [rank, part] : parts_) {
    all.loss += part.loss;
    all.weight += part.weight;
  }
  Evaluation evaluation;
  evaluation.examples = examples_;
  if (trouble_.ok()) {
    Result<ScoreBook::Told> told = book_.Finish(all.loss / all.weight);
    trouble_ = told.status();
    if (told.ok()) {
      evaluation.figures = std::move(told->figures);
      evaluation.bins = std::move(told->bins);
    }
  }
  if (!trouble_.ok()) evaluation.figures = FiguresWithout(metrics_, trouble_.message());
  FillKnownFigures(&evaluation);
  return evaluation;
}

void ProgressiveFigures::Take(uint32_t rank, const CommandDone& done) {
  parts_[rank] = {done.scores, done.labels, done.weights, done.groups};
}

Evaluation ProgressiveFigures::Finish(const Job& job, FileSystem& files, const std::string& out) {
  const std::vector<TaskMetrics> metrics = ProgressiveMetricsOf(job);
  ScoreBook book(files, JoinPath(out, "progressive"), metrics);
  Evaluation evaluation;
  Status trouble;
  for (const auto& [rank, part] : std::exchange(parts_, {})) {
    if (!trouble.ok()) break;
    evaluation.examples += part.labels.size() / sizeof(float) / metrics.size();
    trouble = book.Add(part.scores.As<float>(), part.labels.As<float>(), part.weights.As<float>(),
                       part.groups.As<Key>());
  }
  // No kind of score that comes here needs the mean loss.
  Result<ScoreBook::Told> told = trouble.ok() ? book.Finish(0) : trouble;
  if (told.ok()) {
    evaluation.figures = std::move(told->figures);
  } else {
    evaluation.figures = FiguresWithout(metrics, told.status().message());
  }
  FillKnownFigures(&evaluation);
  return evaluation;
}

double FigureOf(const Evaluation& evaluation, std::string_view metric) {
  const Figure* const figure = FindFigure(evaluation.figures, metric);
  return figure == nullptr ? kNoFigure : figure->value;
}

std::string ShownWord(const Figure& figure) { return figure.word == "auc" ? "AUC" : figure.word; }

std::string Describe(const Evaluation& evaluation) {
  std::string text, last_reason;
  for (const Figure& figure : evaluation.figures) {
    text += (text.empty() ? "" : ", ") + ShownWord(figure);
    if (std::isfinite(figure.value)) {
      text += " " + Figure6(figure.value);
      continue;
    }
    text += " undefined";
    // A reason shared by several figures is given once.
    if (!figure.about.empty() && figure.about != last_reason) text += " (" + figure.about + ")";
    last_reason = figure.about;
  }
  if (evaluation.by_program) return text;
  return text + " over " + ShowWhole(static_cast<double>(evaluation.examples)) + " examples";
}

}  // namespace hdps
