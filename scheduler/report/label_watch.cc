// Sums label tallies, and describes what is found.
#include "scheduler/report/label_watch.h"

#include <algorithm>

#include "common/base/show_number.h"
#include "common/job/eval_sets.h"
#include "common/job/job_facts.h"
#include "common/job/job_spec.h"
#include "common/job/spec/data_spec.h"
#include "common/job/spec/loss_kind.h"
#include "common/job/spec/model_spec.h"

namespace hdps {
namespace {

constexpr size_t kTextsMax = 64;  // The number of bits in LabelTally.

// Describes labels of only one class; empty if there are several, or no labels.
std::string OneClass(const LabelTally& labels, const char* of) {
  if (labels.count == 0 || labels.least != labels.largest) return "";
  return "all " + ShowWhole(static_cast<double>(labels.count)) + " " + of + " labels " +
         (labels.weightless > 0 ? "with a weight " : "") + "are " + ShowNumber("%g", labels.least);
}

bool NoWeight(const LabelTally& labels) { return labels.count == 0 && labels.weightless > 0; }

}  // namespace

LabelWatch::LabelWatch(const Job& job)
    : has_evaluation_(!EvalSetsOf(job.data).empty()),
      classes_(TasksOf(job.model)[0].loss != LossKind::kSquared) {
  for (const ColumnSpec& column : job.data.columns) {
    if (column.type == ColumnType::kWeight) weight_column_ = column.name;
  }
  // With several tasks the tally mixes all labels, and has no text.
  if (job.model.tasks.size() > 1) return;
  if (!HasNamedColumns(job.data.format)) return;
  for (const ColumnSpec& column : job.data.columns) {
    if (column.type != ColumnType::kLabel) continue;
    column_ = column.name;
    texts_ = column.positive;
  }
  texts_.resize(std::min(texts_.size(), kTextsMax));
}

std::vector<std::string> LabelWatch::Trained(const LabelTally& labels, bool end_of_epoch) {
  trained_.Add(labels);
  std::vector<std::string> found;
  if (!end_of_epoch) return found;
  JudgeTraining(&found);
  // A text may occur only in the evaluation files, so these are awaited if there are any.
  if (!has_evaluation_ || trained_.texts == 0) JudgeTexts(&found);
  return found;
}

std::vector<std::string> LabelWatch::Evaluated(const LabelTally& labels) {
  std::vector<std::string> found;
  JudgeTraining(&found);
  if (!evaluation_judged_ && labels.count + labels.weightless > 0) {
    evaluation_judged_ = true;
    evaluated_.Add(labels);
    if (NoWeight(evaluated_))
      found.push_back(AllWeights(evaluated_, "evaluation") + "nothing can be measured");
    const std::string one = OneClass(evaluated_, "evaluation");
    if (classes_ && !one.empty()) {
      found.push_back(one + ": how well the classes are told apart cannot be measured");
    }
  }
  // A finished job that is run again is evaluated without having read the training files.
  if (trained_.count > 0 || evaluated_.texts == 0) JudgeTexts(&found);
  return found;
}

std::string LabelWatch::AllWeights(const LabelTally& labels, const char* of) const {
  return "all " + ShowWhole(static_cast<double>(labels.weightless)) + " " + of +
         " weights (column \"" + weight_column_ + "\") are 0: ";
}

void LabelWatch::JudgeTraining(std::vector<std::string>* found) {
  if (training_judged_ || trained_.count + trained_.weightless == 0) return;
  training_judged_ = true;
  if (NoWeight(trained_)) {
    found->push_back(AllWeights(trained_, "training") + "nothing is learned of them");
  }
  const std::string one = OneClass(trained_, "training");
  if (classes_ && !one.empty()) {
    found->push_back(one + ": there is nothing to tell apart, and the loss means nothing");
  }
}

void LabelWatch::JudgeTexts(std::vector<std::string>* found) {
  LabelTally seen = trained_;
  seen.Add(evaluated_);
  if (seen.count == 0) return;
  for (size_t t = 0; t < texts_.size(); ++t) {
    const uint64_t bit = uint64_t{1} << t;
    if (((seen.texts | texts_told_) & bit) != 0) continue;
    texts_told_ |= bit;
    found->push_back("the positive text \"" + texts_[t] + "\" of column \"" + column_ +
                     "\" is that of none of the " + ShowWhole(static_cast<double>(seen.count)) +
                     " labels read so far");
  }
}

}  // namespace hdps
