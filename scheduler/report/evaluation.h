// What an evaluation came to: the workers' parts as one, and its sentence for people.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "common/metrics/metric.h"
#include "common/metrics/score_book.h"
#include "common/platform/file_system.h"
#include "common/protocol/tallies.h"

namespace hdps {

struct CommandDone;
struct Job;

struct Evaluation {
  uint64_t examples = 0;
  double auc = 0;      // NaN where there is none.
  double logloss = 0;  // NaN where there is none.
  // Why the AUC has no value, in words; empty where it has one, and where nobody asked for it.
  std::string no_auc = {};
  // Everything that was asked for (train.metrics), the two above among them.
  std::vector<Figure> figures = {};
  std::vector<CalibrationBin> bins = {};  // Where ece was asked for.
};

// Sets auc, logloss and no_auc from the figures.
void FillKnownFigures(Evaluation* evaluation);

// The answers to kEvaluate of all workers, as they come in pieces.
//
// Invariant: the figures depend on the examples alone, not on how many workers scored them.
class EvaluationSums {
 public:
  // In `out` scores that do not fit in memory are put for a while.
  EvaluationSums(const Job& job, FileSystem& files, const std::string& out);

  void Add(uint32_t rank, const CommandDone& done);
  const LabelTally& labels() const { return labels_; }
  // Once, when all have come. Where scores could not be kept its figures say so.
  Evaluation Finish();

 private:
  struct Part {
    double loss = 0, weight = 0;
  };
  ScoreBook book_;
  std::vector<TaskMetrics> metrics_;
  std::map<uint32_t, Part> parts_;  // By rank: sums of floats run in that order.
  uint64_t examples_ = 0;
  LabelTally labels_;
  Status trouble_;
};

// The figure of that word, as in train.metrics; NaN where there is none.
double FigureOf(const Evaluation& evaluation, std::string_view metric);

// The word as a sentence has it: "AUC" for "auc", the others as train.metrics has them.
std::string ShownWord(const Figure& figure);

// "AUC 0.912345, logloss 0.301234 over 16,281 examples".
std::string Describe(const Evaluation& evaluation);

}  // namespace hdps
