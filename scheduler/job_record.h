// The part of a job that outlives its scheduler process: kept in scheduler.state, and in part in
// checkpoints.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "common/net/node.h"
#include "common/protocol/command_messages.h"
#include "common/protocol/manifest.h"
#include "common/protocol/watch_state.h"
#include "scheduler/plan/job_plan.h"
#include "scheduler/report/run_summary.h"

namespace hdps {

enum class JobPhase : uint8_t {
  kSuspended,
  kQuiet,  // The members are about to change.
  kMoveDense,
  kMoveSave,
  kMoveServers,
  kMoveWorkers,
  kLoadServers,
  kLoadWorkers,
  kInitDense,
  kTrain,
  kStoreDense,
  kEvaluate,
  kDigest,
  kSave,
  kFinish,
  kEvict,  // Between two rounds of training: rows that are old by the clock leave.
  kOver,
};

// The state that phases change while the job goes on.
struct JobRecord {
  using Sums = TrainedSums;
  // A kTrain command that was sent, with its number.
  struct Order {
    PeerId worker;
    Command command;
  };
  uint64_t epoch_rows = 0;            // 0: not known.
  std::vector<FilePrint> data_files;  // Prints of data.train as the present epoch reads them.
  bool stop = false;                  // The operator asked for a stop of this run.
  // The scheduler process that wrote this was told to leave: nothing came after it.
  bool scheduler_left = false;
  Clock reached = 0;             // The furthest known step of the run; a stop saves no earlier one.
  Sums trained;                  // Since the present state was begun or loaded.
  Sums epoch, last_epoch;        // Sums of the present epoch, and of the one before.
  uint64_t examples_before = 0;  // Examples of the loaded state; counts_before likewise.
  uint64_t examples_worked = 0;  // Examples of all processes of the run, lost steps included.
  RowCounts counts_before;
  TimeMs training_ms = 0, wall_ms = 0;
  // Of the present state, where rows leave by the clock: how long it was trained, and the steps
  // that tell the age of rows.
  TimeMs trained_ms = 0;
  std::vector<StepTime> step_times;
  std::vector<PartitionOffset> offsets;  // Where the present state is in a topic, by partition.
  RunSummary summary;                    // Filled in as the job runs.
  Clock steps_before = 0;                // Steps of the jobs that this one began from.
  std::string init;           // Checkpoint of another job that this one began from; or empty.
  std::vector<Order> orders;  // All kTrain commands of the present round.

  // Forgets what was asked of the former run, at the beginning of a new one.
  void ForgetRun() { stop = false, reached = 0; }
  // Returns the record without progress, for a run in which everything is loaded again.
  JobRecord WithoutProgress() const;
};

// The record as it is written: with the phase and with the states of the plan and the watches.
struct JobState : JobRecord {
  JobPhase phase = JobPhase::kSuspended;
  JobPlan::State plan;
  Watched watched;

  // Counts the steps and examples since the checkpoint as lost: they will be trained again.
  void CountAsLost(const Manifest& checkpoint);
};

// How a field is kept in scheduler.state and in a manifest.
struct Kept {
  enum class In : uint8_t {
    kEvery,  // Every state has it.
    kLater,  // States of earlier versions lack it; it then keeps its value.
    kIfAny,  // Written only if it is not empty.
  };
  In in = In::kEvery;
  bool past = false;  // A number from 0 to 2^53, so the sum of a few of them does not overflow.
  bool told_anew = false;  // Members report it after loading, whatever the manifest says.
};

// The one list of fields: calls visit(name, member, how it is kept[, its place in a manifest]).
// Writing, reading, checking and checkpoints all follow it. "a/b" is b in the object a.
template <typename State, typename Visit>
void VisitFields(State& job, Visit&& visit) {
  constexpr Kept kLater{.in = Kept::In::kLater}, kIfAny{.in = Kept::In::kIfAny};
  constexpr Kept kPast{.past = true}, kEvery;
  visit("phase", job.phase, kEvery);
  visit("clock", job.plan.position.clock, kEvery, &Manifest::clock);
  visit("epoch", job.plan.position.epoch, kEvery, &Manifest::epoch);
  visit("epoch_start", job.plan.position.epoch_start, kEvery, &Manifest::epoch_start);
  visit("saved", job.plan.saved, kEvery);
  visit("stopped", job.plan.stopped, kEvery);
  visit("ending", job.plan.ending, kEvery);
  visit("stopped_early", job.plan.stopped_early, kLater);
  visit("full_save", job.plan.full_save, kLater);
  visit("due", job.plan.due, kEvery);
  visit("watched", job.watched, kLater, &Manifest::watched);
  visit("epoch_rows", job.epoch_rows, Kept{.in = Kept::In::kLater, .past = true});
  visit("data_files", job.data_files, Kept{.in = Kept::In::kIfAny, .told_anew = true},
        &Manifest::data_files);
  visit("init", job.init, kIfAny);
  visit("steps_before", job.steps_before, Kept{.in = Kept::In::kIfAny, .past = true},
        &Manifest::steps_before);
  visit("orders", job.orders, kEvery);
  visit("stop", job.stop, kEvery);
  visit("scheduler_left", job.scheduler_left, kIfAny);
  visit("reached", job.reached, Kept{.in = Kept::In::kLater, .past = true});
  visit("trained", job.trained, kEvery);
  visit("epoch_sums", job.epoch, kEvery, &Manifest::epoch_sums);
  visit("last_epoch_sums", job.last_epoch, kEvery, &Manifest::last_epoch_sums);
  visit("examples_before", job.examples_before, kEvery, &Manifest::examples);
  visit("examples_worked", job.examples_worked, kEvery);
  visit("counts_before", job.counts_before, kLater, &Manifest::row_counts);
  visit("training_ms", job.training_ms, kPast);
  visit("wall_ms", job.wall_ms, kPast);
  visit("trained_ms", job.trained_ms, Kept{.in = Kept::In::kIfAny, .past = true},
        &Manifest::trained_ms);
  visit("step_times", job.step_times, kIfAny, &Manifest::step_times);
  visit("offsets", job.offsets, kIfAny, &Manifest::offsets);
  auto& summary = job.summary;
  visit("summary/failures_survived", summary.failures_survived, kEvery);
  visit("summary/leaves", summary.leaves, kIfAny);
  visit("summary/steps_again", summary.steps_again, kEvery);
  visit("summary/examples_again", summary.examples_again, kEvery);
  visit("summary/stood_ms", summary.stood_ms, Kept{.in = Kept::In::kIfAny, .past = true});
  visit("summary/bad_rows", summary.bad_rows, kEvery, &Manifest::bad_rows);
  visit("summary/unknown_ids", summary.unknown_ids, Kept{.in = Kept::In::kIfAny, .past = true},
        &Manifest::unknown_ids);
  visit("summary/digest", summary.digest, kEvery);
  visit("summary/rows", summary.rows, kEvery);
  visit("summary/dense_rows", summary.dense_rows, kEvery);
  visit("summary/dense_parameters", summary.dense_parameters, kEvery);
  visit("summary/counts", summary.row_counts, kEvery);
  visit("summary/row_bytes", summary.row_bytes, kEvery);
  visit("summary/server_bytes_max", summary.server_bytes_max, kEvery);
  visit("summary/resumed_from", summary.resumed_from, Kept{.in = Kept::In::kIfAny, .past = true});
  visit("summary/evaluation", summary.evaluation, kIfAny);
  visit("summary/eval_sets", summary.eval_sets, kIfAny);
  visit("summary/progressive", summary.progressive, kIfAny);
}

// Returns the manifest of a checkpoint of `state`. `counts`: row counts of the servers since they
// loaded.
Manifest ManifestOf(JobState state, const RowCounts& counts);
// Sets the record back to that checkpoint; fields that the manifest lacks stay as they are.
void GoOnFrom(const Manifest& manifest, JobState* state);

}  // namespace hdps
