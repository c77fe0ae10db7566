// The result of an evaluation, or of train.progressive, merged from the workers' parts, and its
// description.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/buffer.h"
#include "common/metrics/metric.h"
#include "common/metrics/score_book.h"
#include "common/platform/file_system.h"
#include "common/protocol/tallies.h"

namespace hdps {

struct CommandDone;
struct Job;

struct Evaluation {
  uint64_t examples = 0;
  double auc = 0;      // NaN if there is none.
  double logloss = 0;  // NaN if there is none.
  // Why the AUC has no value; empty if it has one or was not asked for.
  std::string no_auc = {};
  // All figures that were asked for (train.metrics), including the two above.
  std::vector<Figure> figures = {};
  std::vector<CalibrationBin> bins = {};  // Set if ece was asked for.
  bool by_program = false;  // Measured by the program that has the model, without `examples`.
};

// Returns the figures that the program of worker 0 has reported.
Evaluation EvaluationOfProgram(const CommandDone& done);

// Sets auc, logloss and no_auc from the figures.
void FillKnownFigures(Evaluation* evaluation);

// Returns the figures without values, because the scores could not be kept.
std::vector<Figure> FiguresWithout(const std::vector<TaskMetrics>& metrics,
                                   const std::string& trouble);

// Merges the answers of all workers to kEvaluate, which come in pieces.
//
// Invariant: the figures depend only on the examples, not on how many workers scored them.
class EvaluationSums {
 public:
  // Scores that do not fit in memory are kept in `out` for a while.
  EvaluationSums(const Job& job, FileSystem& files, const std::string& out);

  void Add(uint32_t rank, const CommandDone& done);
  const LabelTally& labels() const { return labels_; }
  // Returns the result; called once, after all answers. If scores could not be kept, the figures
  // say so.
  Evaluation Finish();

 private:
  struct Part {
    double loss = 0, weight = 0;
  };
  ScoreBook book_;
  std::vector<TaskMetrics> metrics_;
  std::map<uint32_t, Part> parts_;  // By rank; fixes the order of floating-point sums.
  uint64_t examples_ = 0;
  LabelTally labels_;
  Status trouble_;
};

// Merges the workers' parts of the window of train.progressive, which come with their answers to
// kTrain.
//
// Invariant: the figures are those of the examples that the workers' newest answers have, whatever
// their order.
class ProgressiveFigures {
 public:
  void Take(uint32_t rank, const CommandDone& done);
  // Returns the figures and begins anew. Scores that do not fit in memory are kept in `out` for a
  // while.
  Evaluation Finish(const Job& job, FileSystem& files, const std::string& out);

 private:
  struct Part {
    Buffer scores, labels, weights, groups;
  };
  std::map<uint32_t, Part> parts_;  // By rank.
};

// Returns the figure of a metric, named as in train.metrics; NaN if there is none. An empty name is
// that of the first.
double FigureOf(const Evaluation& evaluation, std::string_view metric);

// Returns the metric's name for a sentence: "AUC" for "auc", others as in train.metrics.
std::string ShownWord(const Figure& figure);

// Such as "AUC 0.912345, logloss 0.301234 over 16,281 examples".
std::string Describe(const Evaluation& evaluation);

}  // namespace hdps
