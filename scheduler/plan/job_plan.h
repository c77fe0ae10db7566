// What comes next in a job: train to which step, when to evaluate, when to save, when it is done.
#pragma once

#include <cstdint>
#include <deque>
#include <vector>

#include "common/base/ids.h"

namespace hdps {

struct Job;

// Where a job stands: `clock` steps are done, and epoch `epoch` began after `epoch_start` of them.
struct JobPosition {
  Clock clock = 0;
  uint32_t epoch = 0;
  Clock epoch_start = 0;
};

enum class JobStep : uint8_t {
  kTrain,       // All workers, until until().
  kStoreDense,  // Worker 0, or all that share the optimizer: what allreduce kept at the workers
                // goes to the servers.
  kEvaluate,    // All workers.
  kDigest,      // Servers; once, at the end.
  kSave,        // Servers.
  kFinish,      // All.
};

// Invariant: next() is a function of the position, of what is due there, and of whether the job has
// been stopped; after kFinish nothing follows. At one clock everything that is due comes in the
// order of JobStep, so a checkpoint holds what was evaluated.
class JobPlan {
 public:
  // No boundary ahead: until the end of the epoch.
  static constexpr Clock kNoBoundary = Clock{1} << 62;

  // What else is known where a plan begins.
  struct Past {
    // `start` comes from a checkpoint, so there is nothing to save at it.
    bool loaded = false;
    Clock evaluated = -1;          // Of the last evaluation; -1: nobody knows.
    bool out_of_patience = false;  // What was evaluated ends the job.
    uint64_t epoch_rows = 0;       // Of an epoch, over all workers; 0: nobody has counted them.
  };
  JobPlan(const Job& job, const JobPosition& start, const Past& past);

  // All that a plan of the same job goes on from.
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
  Clock until() const;  // The clock to train to: a checkpoint's, an evaluation's, the last, or none
                        // before the epoch's end.
  const JobPosition& position() const { return position_; }
  // Whether a save that is next must hold everything. Others may hold what changed since the last.
  bool full_save() const { return full_save_; }
  // All that the job asks for has been trained, or evaluations have ended it.
  bool finished() const;
  bool stopped() const { return stopped_; }
  bool stopped_early() const { return stopped_early_; }

  // kTrain is done: all workers stand at `clock`. Requires: clock >= position().clock.
  void Trained(Clock clock, bool end_of_epoch);
  // kEvaluate, which is next, has given its figures. `best`: they are to be kept. `enough`: the job
  // ends here.
  void Evaluated(bool best, bool enough);
  // next(), not kTrain, is done. A save that failed leaves the position unsaved, as does one that
  // has taken the rows and is still to be written, until Saved().
  enum class Outcome : uint8_t { kDone, kFailed, kTaken };
  void Done(Outcome outcome = Outcome::kDone);
  void Saved(Clock clock) { saved_ = clock; }
  // The operator wants an end: after the training at hand the job is saved and finished.
  void Stop();
  // It wants none any more: the job goes on, unless it is finished.
  void ForgetStop();

 private:
  void PlanWhatIsDue(bool end_of_epoch);
  bool EvaluationIsDue(bool end_of_epoch) const;
  // The step of this epoch behind its `part`-th part for evaluation.
  Clock EndOfPart(uint32_t part) const;

  const uint32_t epochs_;
  const Clock max_steps_;  // 0 = no limit.
  const Clock save_every_, delta_every_;
  const Clock eval_every_;  // 0 = not by steps, as without data to evaluate.
  const uint32_t save_epochs_;
  const bool has_evaluation_, eval_each_epoch_, keep_best_, allreduce_;
  const uint32_t epoch_parts_;  // With an evaluation behind each; 0: as the others say.
  const Clock epoch_steps_;     // 0: not known.
  JobPosition position_;
  Clock saved_ = -1;      // The clock of the newest checkpoint; -1 = none.
  Clock evaluated_ = -1;  // That of the last evaluation that this plan has seen; -1: none.
  bool stopped_ = false, stopped_early_ = false;
  bool ending_ = false;      // kFinish has been planned.
  bool full_save_ = true;    // Of the save that was planned last.
  std::deque<JobStep> due_;  // Before the next training; at most one of each step.
};

}  // namespace hdps
