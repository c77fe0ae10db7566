// One training round: all workers go from one clock to the next common one, also when told to
// pause.
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

// Workers that are told to pause stop after the step at hand, so each at a clock of its own. A step
// at hand may need the others: under sync its pull waits until all have finished the step before,
// under allreduce its sum needs every rank. So whoever has stopped is sent on at once, as far as
// the others' steps at hand can reach; when all have answered, the slower ones catch up with the
// fastest.
//
// Invariant: a worker has at most one kTrain out; complete() means that all have answered at one
// clock. The order of the workers' answers does not matter to what the round adds up.
class TrainRound {
 public:
  TrainRound(uint32_t num_workers, Clock start, Clock until);

  struct Order {
    uint32_t worker = 0;
    CommandKind command = CommandKind::kTrain;  // or kPause
    Clock until = 0;
  };
  // Another process of the scheduler has given this worker an order of this round, which is given
  // again: it may have been answered already, and one that followed it too.
  void TakeOver(uint32_t worker);
  // What is to be sent now.
  std::vector<Order> TakeOrders(TimeMs now);

  void Pause() { paused_ = true; }
  void OnProgress(uint32_t worker, Clock clock);  // As heartbeats tell it; only ever too low.
  // The answer to a kTrain of this round.
  void OnTrained(uint32_t worker, const CommandDone& done);

  bool complete() const;
  Clock furthest() const;  // Of all workers, as far as it is known.
  // A worker that ended the epoch at another clock than most, or has gone on behind their end,
  // which only a fault in the data explains; none while all is well.
  std::optional<uint32_t> OddOneOut() const;
  std::string Disagreement(uint32_t odd) const;  // For people.

  // Requires: complete().
  Clock clock() const { return workers_.front().clock; }
  bool end_of_epoch() const;
  // Over all workers, in the order of their ranks.
  struct Sums {
    uint64_t examples = 0;
    double loss_sum = 0;
    uint64_t bad_rows = 0;
    LabelTally labels;
  };
  Sums sums() const;
  Sums sums_of_first() const { return workers_.front().sums; }  // Worker 0 alone.

 private:
  struct Worker {
    Clock clock = 0;  // Finished, as far as we know.
    bool running = false;
    uint32_t orders = 0;  // To train, that it has not answered.
    bool end_of_epoch = false;
    bool pause_sent = false;
    TimeMs paused_at = 0;
    Sums sums;
  };
  Clock Reach() const;

  const Clock until_;
  bool paused_ = false;
  bool started_ = false;
  std::vector<Worker> workers_;
};

}  // namespace hdps
