// Plans a job: how far to train next, when to evaluate and save, and when it is done.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <vector>

#include "common/base/ids.h"

namespace hdps {

struct Job;

// The position of a job: `clock` steps are done, and epoch `epoch` began after `epoch_start` of
// them.
struct JobPosition {
  Clock clock = 0;
  uint32_t epoch = 0;
  Clock epoch_start = 0;
};

enum class JobStep : uint8_t {
  kTrain,  // All workers train, up to until().
  // Worker 0, or all workers that share the optimizer's state, store what allreduce kept at them;
  // all workers store the states of programs that have the model.
  kStoreDense,
  kEvaluate,  // All workers evaluate.
  kDigest,    // The servers compute their digests, once at the end.
  kSave,      // The servers save a checkpoint.
  kFinish,    // All members finish.
};

// What is to be saved beside what is due by steps and epochs: by the clock, or because a program
// asks for it.
enum class WantedSave : uint8_t { kNone, kChanges, kAll };

// Invariant: next() depends on the position, on what is due there, and on whether the job was
// stopped; nothing follows kFinish. Steps due at one clock come in the order of JobStep, so a
// checkpoint holds the result of the evaluation.
class JobPlan {
 public:
  // No boundary before the end of the epoch.
  static constexpr Clock kNoBoundary = Clock{1} << 62;

  // What else is known at the beginning of a plan.
  struct Past {
    // `start` comes from a checkpoint, so nothing needs to be saved there.
    bool loaded = false;
    Clock evaluated = -1;          // Clock of the last evaluation; -1: not known.
    bool out_of_patience = false;  // Past evaluations end the job.
    uint64_t epoch_rows = 0;       // Rows of an epoch, over all workers; 0: not known.
  };
  JobPlan(const Job& job, const JobPosition& start, const Past& past);

  // The state from which a plan of the same job can be continued.
  struct State {
    JobPosition position;
    Clock saved = -1;
    bool stopped = false, ending = false;
    bool stopped_early = false, full_save = true;
    std::vector<JobStep> due;
  };
  JobPlan(const Job& job, const State& state, uint64_t epoch_rows);
  State state() const;

  JobStep next() const { return due_.empty() ? JobStep::kTrain : due_.front(); }
  // The clock to train to: that of a checkpoint, an evaluation, figures of train.progressive or the
  // last step; kNoBoundary if none comes before the epoch's end.
  Clock until() const;
  const JobPosition& position() const { return position_; }
  // Returns whether the next save must be full; others may hold only what changed since the last.
  bool full_save() const { return full_save_; }
  // Is true if all that the job asks for was trained, or if evaluations have ended it.
  bool finished() const;
  // Returns the clock of the newest save that is done or was planned; -1: none.
  Clock newest_save() const { return std::max(saved_, planned_save_); }
  bool stopped() const { return stopped_; }
  bool stopped_early() const { return stopped_early_; }

  // Notes the end of kTrain: all workers stand at `clock`. Requires: clock >= position().clock.
  void Trained(Clock clock, bool end_of_epoch, WantedSave save = WantedSave::kNone);
  // Notes the result of kEvaluate, the present step. `best`: keep this state. `enough`: end the
  // job.
  void Evaluated(bool best, bool enough);
  // Notes the end of next(), which is not kTrain. After a failed save the position counts as
  // unsaved; after one that has only copied rows it does until Saved().
  enum class Outcome : uint8_t { kDone, kFailed, kTaken };
  void Done(Outcome outcome = Outcome::kDone);
  void Saved(Clock clock) { saved_ = clock; }
  // Plans a save at this clock unless there is one, as if it were due by the clock. Requires:
  // next() is kTrain, and the job was not stopped.
  void SaveHere();
  // Stops the job: after the present training it is saved and finished.
  void Stop();
  // Takes a stop back: the job goes on, unless it is finished.
  void ForgetStop();

 private:
  void PlanWhatIsDue(bool end_of_epoch, WantedSave wanted = WantedSave::kNone);
  bool EvaluationIsDue(bool end_of_epoch) const;
  // Is true if a run that ends where changes were saved has to save all: a save of changes may be
  // lost with the machine's power, and what the run has done must not be.
  bool MakesLastFull() const { return ending_ && saves_deltas_; }
  // Returns the step at which part number `part` of this epoch ends, for evaluation.
  Clock EndOfPart(uint32_t part) const;

  const uint32_t epochs_;
  const Clock max_steps_;  // 0 = no limit.
  const Clock save_every_, delta_every_;
  const Clock eval_every_;         // 0 = not by steps, also without evaluation data.
  const Clock progressive_every_;  // Figures of train.progressive are told; 0: none are.
  const bool saves_deltas_;        // By steps or by the clock.
  const uint32_t save_epochs_;
  const bool has_evaluation_;
  const bool eval_by_epochs_;  // Also at the end of the job; false if another program evaluates.
  const bool eval_each_epoch_, keep_best_;
  const bool programs_have_model_;
  const bool stores_dense_;     // Workers keep what a checkpoint must hold.
  const uint32_t epoch_parts_;  // Parts of an epoch that end with an evaluation; 0: none.
  const Clock epoch_steps_;     // 0: not known.
  JobPosition position_;
  Clock saved_ = -1;         // Clock of the newest checkpoint; -1 = none.
  Clock planned_save_ = -1;  // Clock of the last kSave in `due_`; -1: none.
  Clock evaluated_ = -1;     // Clock of the last evaluation in this plan; -1: none.
  bool stopped_ = false, stopped_early_ = false;
  bool ending_ = false;      // kFinish has been planned.
  bool full_save_ = true;    // For the save that was planned last.
  std::deque<JobStep> due_;  // Steps before the next training; each at most once.
};

}  // namespace hdps
