// Warns if the labels do not look as the job's author meant them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/protocol/tallies.h"

namespace hdps {

struct Job;

// A typo in `positive` makes every label 0, and a model of such labels looks perfect. So labels of
// only one class, and positive texts that no label has, are reported.
//
// Invariant: each finding is reported once.
class LabelWatch {
 public:
  explicit LabelWatch(const Job& job);

  // Adds the labels of some steps; the first end of an epoch returns the findings so far.
  std::vector<std::string> Trained(const LabelTally& labels, bool end_of_epoch);
  // Adds the labels of an evaluation; the first one returns the findings so far.
  std::vector<std::string> Evaluated(const LabelTally& labels);

 private:
  void JudgeTraining(std::vector<std::string>* found);
  // Such as "all 60 training weights (column "w") are 0: ".
  std::string AllWeights(const LabelTally& labels, const char* of) const;
  void JudgeTexts(std::vector<std::string>* found);

  std::string weight_column_;
  std::string column_;              // Column of the label; empty if its values are numbers.
  std::vector<std::string> texts_;  // Its first 64 positive texts.
  const bool has_evaluation_;
  const bool classes_;  // Labels of the first task are classes, not arbitrary numbers.
  bool training_judged_ = false, evaluation_judged_ = false;
  LabelTally trained_;
  LabelTally evaluated_;  // Labels of the first evaluation.
  uint64_t texts_told_ = 0;
};

}  // namespace hdps
