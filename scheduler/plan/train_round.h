// One round of training: all workers go from one common clock to the next, also after a pause.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/net/node.h"
#include "common/protocol/command_messages.h"
#include "common/protocol/tallies.h"

namespace hdps {

struct CommandDone;

// Workers that are told to pause stop after their present step, so each at its own clock. A step
// may need the other workers: under sync its pull waits until all have finished the step before,
// and under allreduce its sum needs every rank. So a worker that has stopped is sent on at once, as
// far as the present steps of the others can reach. When all have answered, the slower ones catch
// up with the fastest.
//
// Invariant: a worker has at most one open kTrain; complete() means that all have answered at one
// clock. The sums do not depend on the order of the workers' answers.
class TrainRound {
 public:
  TrainRound(uint32_t num_workers, Clock start, Clock until);

  struct Order {
    uint32_t worker = 0;
    CommandKind command = CommandKind::kTrain;  // kTrain or kPause.
    Clock until = 0;
    Clock from = 0;  // kTrain: the worker's clock.
  };
  // Notes that a former scheduler process sent this worker an order of this round, which is now
  // sent again; the worker may have answered it, and a later one.
  void TakeOver(uint32_t worker);
  // Returns the orders to send now.
  std::vector<Order> TakeOrders(TimeMs now);

  void Pause() { paused_ = true; }
  // Is true if the only workers that have not answered have ended, as OnProgress() says: they may
  // wait for a pause.
  bool OnlyStandingRun() const;
  // What a worker is at between its answers.
  enum class Stand : uint8_t {
    kSteps,     // It is in a step, or between two.
    kHasEnded,  // It has no more examples, or waits for a checkpoint.
    kNoRows     // It waits for rows of a followed log or a topic.
  };
  // From heartbeats; may be too low, never too high. Other than kSteps: it answers a pause at this
  // clock, and no other worker has to follow it further.
  void OnProgress(uint32_t worker, Clock clock, Stand stand = Stand::kSteps);
  // Notes that another process has the place of this worker, and is given the last order again, as
  // if it had not been answered.
  void Replace(uint32_t worker);
  // Notes that a worker which has answered its last order is given it again, up to where it stands;
  // the next answer counts in place of that one.
  void AskAgain(uint32_t worker);
  bool runs(uint32_t worker) const { return workers_[worker].running; }
  Clock clock_of(uint32_t worker) const { return workers_[worker].clock; }
  // Takes the answer to a kTrain of this round.
  void OnTrained(uint32_t worker, const CommandDone& done);

  bool complete() const;
  Clock furthest() const;  // Largest known clock of all workers.
  // Returns a worker that ended the epoch at another clock than most, or trained on past their end,
  // which only a fault in the data explains; none otherwise.
  std::optional<uint32_t> OddOneOut() const;
  std::string Disagreement(uint32_t odd) const;  // Text of the error.

  // Requires: complete().
  Clock clock() const { return workers_.front().clock; }
  bool end_of_epoch() const;
  // Sums over all workers, in the order of their ranks.
  struct Sums {
    uint64_t examples = 0;
    double loss_sum = 0;
    uint64_t bad_rows = 0;
    LabelTally labels;
  };
  Sums sums() const;
  Sums sums_of_first() const { return workers_.front().sums; }  // Sums of worker 0 alone.

 private:
  struct Worker {
    Clock clock = 0;  // Finished steps, as far as known.
    bool running = false;
    Stand stand = Stand::kSteps;
    uint32_t orders = 0;  // Unanswered kTrain commands.
    bool end_of_epoch = false;
    bool pause_sent = false;
    TimeMs paused_at = 0;
    Sums sums, before;  // `before`: when the last order was given.
  };
  Clock Reach() const;

  const Clock until_;
  bool paused_ = false;
  bool started_ = false;
  std::vector<Worker> workers_;
};

}  // namespace hdps
