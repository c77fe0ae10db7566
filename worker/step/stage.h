// The stages of one training step in order, and the time spent in each.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace hdps {

// Read from top to bottom, this is a step; beside each stage stands the file that carries it out.
// Under allreduce, rows may be reduced and pushed before the last dense gradients are computed: see
// README.md.
enum class Stage : uint8_t {
  kRead,         // worker/data/batch_reader       bytes -> Batch
  kDedup,        // worker/model KeyFinder         keys -> unique keys + positions; split by server
  kPull,         // worker/exchange/pull_plan      unique keys -> rows, from the servers
  kGather,       // worker/model                   rows -> pooled features
  kForward,      // worker/model                   features -> loss
  kBackward,     // worker/model                   loss -> dense gradients, bag gradients
  kReduceDense,  // worker/collective/collective     dense gradients summed over ranks (allreduce)
  kReduceRows,   // worker/model, train/step_parts bag gradients -> one gradient per unique key
  kPush,         // worker/exchange/push_plan      gradients to the servers
  kAdvance,      // worker/role/trainer            this worker has finished one more step
};
inline constexpr size_t kNumStages = 10;

// Names the thread that carries out a stage. Stages of different lanes may overlap, within the
// limits below; those of one lane never do.
enum class Lane : uint8_t { kReader, kComms, kCompute, kCollective };

struct StageRule {
  Stage stage;
  std::string_view name;
  Lane lane;
  // Whether this stage of a later step may run while this step is being computed. With
  // train.lookahead > 0 rows are prefetched; in sync mode the rows that a push changes afterwards
  // are read again after that push, together with the dense rows. With train.lookahead = 0 a pull
  // is sent after the push of the step before, and its rows include that push: async with one
  // worker is then the same as sync.
  bool ahead_of_compute;
};

inline constexpr std::array<StageRule, kNumStages> kStages = {{
    {Stage::kRead, "read", Lane::kReader, true},
    {Stage::kDedup, "dedup", Lane::kReader, true},
    {Stage::kPull, "pull", Lane::kComms, true},
    {Stage::kGather, "gather", Lane::kCompute, false},
    {Stage::kForward, "forward", Lane::kCompute, false},
    {Stage::kBackward, "backward", Lane::kCompute, false},
    {Stage::kReduceDense, "reduce_dense", Lane::kCollective, false},
    {Stage::kReduceRows, "reduce_rows", Lane::kCompute, false},
    {Stage::kPush, "push", Lane::kComms, false},
    {Stage::kAdvance, "advance", Lane::kComms, false},
}};

// Time spent in a run of steps. Reading and deduplicating take place on the reader's thread and
// overlap the others, as do the times called hidden; the rest add up to the compute thread's time.
struct StepTimes {
  uint64_t steps = 0;
  uint64_t examples = 0;
  int64_t read_ns = 0;       // kRead
  int64_t dedup_ns = 0;      // kDedup
  int64_t read_wait_ns = 0;  // Time in which the compute thread waits for the reader.
  // kPull, while the compute thread waits for rows or puts them in place.
  int64_t pull_wait_ns = 0;
  // kPull, between request and reply, while the compute thread did other work.
  int64_t pull_hidden_ns = 0;
  int64_t compute_ns = 0;        // kGather, kForward, kBackward, kReduceRows.
  int64_t reduce_dense_ns = 0;   // kReduceDense and the local update that follows.
  int64_t reduce_hidden_ns = 0;  // kReduceDense, while the compute thread did other work.
  // Rows cached at the worker: summing their gradients over ranks, and the update.
  int64_t keep_ns = 0;
  int64_t push_wait_ns = 0;  // kPush: collecting gradients and handing them over.
  int64_t total_ns = 0;      // Compute thread: all of the above, and whatever is not listed.

  // All times, in the order of the labels `stage` of figures.
  static constexpr std::array<int64_t StepTimes::*, 11> kParts = {
      &StepTimes::read_ns,         &StepTimes::dedup_ns,         &StepTimes::read_wait_ns,
      &StepTimes::pull_wait_ns,    &StepTimes::pull_hidden_ns,   &StepTimes::compute_ns,
      &StepTimes::reduce_dense_ns, &StepTimes::reduce_hidden_ns, &StepTimes::keep_ns,
      &StepTimes::push_wait_ns,    &StepTimes::total_ns};

  void Add(const StepTimes& other) { AddTimes(other, 1); }
  // Returns the times added since `earlier`, an older copy of these times.
  StepTimes Since(const StepTimes& earlier) const {
    StepTimes since = *this;
    since.AddTimes(earlier, -1);
    return since;
  }

 private:
  void AddTimes(const StepTimes& other, int sign) {
    steps += static_cast<uint64_t>(sign) * other.steps;
    examples += static_cast<uint64_t>(sign) * other.examples;
    for (int64_t StepTimes::*const ns : kParts) this->*ns += sign * other.*ns;
  }
};

// "120 steps, 4096 examples/s; ms a step: read 1.2, ..." for the worker's log.
std::string Describe(const StepTimes& times);

}  // namespace hdps
