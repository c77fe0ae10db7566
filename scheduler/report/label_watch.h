// Looks whether the labels are what the job's author meant them to be.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/protocol/tallies.h"

namespace hdps {

struct Job;

// A slip in `positive` makes every label 0, and a model of such labels looks perfect; so labels of
// one class only, and positive texts that no label has, are said in words.
//
// Invariant: what is found is given once.
class LabelWatch {
 public:
  explicit LabelWatch(const Job& job);

  // Labels of some steps; with the first end of an epoch comes what was found so far.
  std::vector<std::string> Trained(const LabelTally& labels, bool end_of_epoch);
  // Labels of an evaluation; with the first one comes what was found so far.
  std::vector<std::string> Evaluated(const LabelTally& labels);

 private:
  void JudgeTraining(std::vector<std::string>* found);
  // "all 60 training weights (column "w") are 0: "
  std::string AllWeights(const LabelTally& labels, const char* of) const;
  void JudgeTexts(std::vector<std::string>* found);

  std::string weight_column_;
  std::string column_;              // Of the label; empty where its values are numbers.
  std::vector<std::string> texts_;  // Its first 64 positive texts.
  const bool has_evaluation_;
  const bool classes_;  // Labels of the first task are classes, not any numbers.
  bool training_judged_ = false, evaluation_judged_ = false;
  LabelTally trained_;
  LabelTally evaluated_;  // The first time.
  uint64_t texts_told_ = 0;
};

}  // namespace hdps
