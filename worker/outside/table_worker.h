// A worker whose model is another program's: it reads rows of the job's tables and gives gradients.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "common/base/ids.h"
#include "common/base/status.h"
#include "worker/exchange/node_channel.h"

namespace hdps {

class Executor;
struct Job;

// How the job stands for the caller. In every state but kSteps the calls of a step return
// kCancelled at once.
enum class Standing : uint8_t {
  kSteps,     // The next step is that of clock().
  kWentBack,  // Rows are those of a checkpoint again, that of clock(): GoOn() after taking note.
  kEnded,     // The job has ended: by max_steps, a stop, or because all workers had finished.
  kFailed,    // The job has failed, or this worker is not wanted any more.
};

// The keys of one table that are asked for, in any order, repeats included.
struct AskedKeys {
  TableId table;
  std::span<const Key> keys;
};

// The rows of one table, of distinct keys. Copies share the memory, which nobody changes.
struct PulledRows {
  TableId table;
  uint32_t dim = 0;
  std::span<const Key> keys;  // [m], by shard, then by their first place among those asked for.
  std::span<const uint32_t> positions;  // [n]: which of `keys` each key is that was asked for.
  std::span<const float> rows;          // [m, dim]
  Clock clock = 0;                      // The step that they belong to.
  uint64_t pull = 0;                    // Number of the pull; 0: kLook.
  std::shared_ptr<const void> keeps_keys, keeps_rows;  // Owners of the memory.
};

// The purpose of a pull. kStep waits until the step may begin (train.mode), and its keys may be
// pushed; kLook neither waits nor makes rows: a key without a row reads as its initial row.
enum class PullFor : uint8_t { kStep, kLook };

// The figures of an evaluation, such as {"auc", 0.8}.
using OutsideFigures = std::vector<std::pair<std::string, double>>;

struct TableWorkerOptions {
  std::shared_ptr<const Job> job;  // Its model.type is "tables".
  // Returns the caller's state for a checkpoint: called inside Advance(), Report() and Finish(), on
  // the caller's thread, when a save is due; an error ends this worker before anything is saved.
  // May be empty: there is none.
  std::function<Result<std::string>()> state;
  // Is asked on the caller's thread now and then while a call waits; true ends the wait with
  // kCancelled, and this worker with it. May be empty.
  std::function<bool()> give_up;
  // Shares long lists of keys and rows among its threads; null for the caller's alone. Outlives the
  // worker. Changes no bit.
  Executor* executor = nullptr;
  // Rows stay in the reply of a single server. Requires: replies lie in memory that this process
  // may write, for a caller in Python may write into what it has pulled; those of another process
  // lie in memory that it lends.
  bool rows_in_replies = false;
};

// Invariant: clock() is the number of finished steps. Gradients of a step reach the servers with
// its Advance() and not before, so a step that is given up changes nothing.
//
// Used by one thread at a time. Errors of all calls: kInvalidArgument for what the caller did wrong
// (a table, a key or a shape that is not there, a gradient that is not finite, a push of keys that
// were not pulled in this step), which changes nothing; kCancelled if standing() is not kSteps any
// more; others end the job for this worker.
class TableWorker {
 public:
  // Requires: `channel` and `clock` outlive it.
  TableWorker(const TableWorkerOptions& options, NodeChannel& channel, MonotonicClock& clock);
  ~TableWorker();

  // Waits until the cluster is complete and the first step may begin. Must be called first.
  Status Begin();

  Standing standing() const;
  // For people: why the job has failed or ended.
  const std::string& reason() const;
  Clock clock() const;
  uint32_t rank() const;
  uint32_t workers() const;
  const Job& job() const;

  // Returns the rows of several tables, each at most once, by one request a server.
  Result<std::vector<PulledRows>> Pull(std::span<const AskedKeys> asked, PullFor use);
  // Asks for rows of the next step ahead, which its Pull() of the same lists takes. Changes no
  // bits.
  Status Prefetch(std::span<const AskedKeys> asked);
  // Adds gradients [pulled.keys.size(), dim] of the loss, a mean over the caller's examples, to
  // those of the step.
  Status Push(const PulledRows& pulled, std::span<const float> gradients);
  // The same for gradients [pulled.positions.size(), dim], one for each key that was asked for.
  // Those of a repeated key are added in their order.
  Status PushEach(const PulledRows& pulled, std::span<const float> gradients);
  // The same for keys [n] with gradients [n, dim]; those of a repeated key are added in their
  // order. Each key must have been pulled in this step.
  Status Push(TableId table, std::span<const Key> keys, std::span<const float> gradients);
  // Sets rows [n, dim] of distinct keys, with the initial optimizer state; they are there for every
  // pull that begins after this call has returned.
  Status Store(TableId table, std::span<const Key> keys, std::span<const float> rows);

  // Ends the step: sends its gradients, and carries out what the scheduler wants before the next
  // one. The gradient of the whole step is the mean of those of the workers, weighted by their
  // `examples`.
  Status Advance(uint64_t examples);
  // Begins the step again: what was pushed in it does not count.
  void GiveUpStep();
  // Asks for a checkpoint at the end of this step: the next Advance() returns when its rows are
  // taken, or when the others are a step further and this worker has to follow first. `state`
  // replaces that of the options in a checkpoint of exactly that clock; without other state a later
  // one has none.
  Status WantCheckpoint(std::optional<std::string> state);

  // An evaluation is due (train.eval_every_steps): the next step waits for the caller's Report().
  bool evaluation_due() const;
  // Gives the figures of an evaluation, such as {"auc", 0.8}; those of worker 0 count.
  Status Report(const OutsideFigures& figures);

  // The caller has no more examples: makes empty steps until this holds for all workers, and
  // returns when the job has ended. If an evaluation is due meanwhile, `evaluate` is called for its
  // figures, and may pull with kLook; without it they are empty. kCancelled in standing kWentBack:
  // the caller has examples again.
  Status Finish(const std::function<Result<OutsideFigures>()>& evaluate = {});
  // Requires: kWentBack.
  void GoOn();
  // The caller's state in the checkpoint that the job began with or went back to; none: a new job,
  // or there was no state.
  const std::optional<std::string>& restored() const;

  // Bytes of rows and gradients that this worker has copied from one place to another, beyond those
  // that servers fill and read.
  uint64_t copied_bytes() const;

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace hdps
