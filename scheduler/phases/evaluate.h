// All workers score the examples of each evaluation set, and what follows from the figures.
#pragma once

#include <memory>
#include <vector>

#include "common/job/eval_sets.h"
#include "scheduler/phases/phase.h"
#include "scheduler/report/evaluation.h"

namespace hdps {

// Invariant: one set at a time, in the order of the job; what is due behind an evaluation follows
// from the figures of all.
class EvaluatePhase : public Phase {
 public:
  explicit EvaluatePhase(const PhaseParts& parts);

  Next Begin(const Turn& turn) override;
  Next OnAnswer(const Answer& answer, const Turn& turn) override;
  Next OnAllAnswered(const Turn& turn) override;

 private:
  Command CommandOfSet() const;  // Whose turn it is.
  void Report(const Turn& turn) const;
  void Judge(const Turn& turn) const;

  const std::vector<EvalSet> sets_;
  std::unique_ptr<EvaluationSums> sums_;  // Of the set at hand.
  std::vector<Evaluation> evaluations_;   // Of the sets before it.
  LabelTally labels_;                     // Of all.
};

}  // namespace hdps
