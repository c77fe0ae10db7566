// All workers score the examples of each evaluation set, or their own programs evaluate; then the
// job acts on the figures, in the second case those of worker 0.
#pragma once

#include <memory>
#include <vector>

#include "common/job/eval_sets.h"
#include "common/protocol/command_messages.h"
#include "scheduler/phases/phase.h"
#include "scheduler/report/evaluation.h"

namespace hdps {

// Invariant: sets are evaluated one at a time, in the order of the job. What follows depends on the
// figures of all sets.
class EvaluatePhase : public Phase {
 public:
  explicit EvaluatePhase(const PhaseParts& parts);

  Next Begin(const Turn& turn) override;
  Next OnAnswer(const Answer& answer, const Turn& turn) override;
  Next OnAllAnswered(const Turn& turn) override;

 private:
  Command CommandOfSet() const;  // Returns the command for the current set.
  void Report(const Turn& turn) const;
  // Warns of figures that settings name and the program has not reported. Returns false if it has
  // reported none at all.
  bool HasFigures() const;
  void ApplyEvaluation(const Turn& turn) const;

  const std::vector<EvalSet> sets_;
  std::unique_ptr<EvaluationSums> sums_;  // Sums of the present set.
  std::vector<Evaluation> evaluations_;   // Results of the sets before it.
  LabelTally labels_;                     // Labels of all sets.
  const bool by_program_;
  CommandDone reported_;  // By the program of worker 0.
};

}  // namespace hdps
