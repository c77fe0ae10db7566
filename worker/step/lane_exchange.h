// The exchange of a worker's lanes with each other and, by queues, with other workers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "common/base/status.h"
#include "common/platform/monotonic_clock.h"
#include "worker/collective/collective_queue.h"
#include "worker/model/step_exchange.h"
#include "worker/model/step_watch.h"

namespace hdps {

// Calls come from one thread, that which computes the lanes; queues make the calls of the groups.
//
// Invariant: between EndStep() and the next BeginStep() no group is in use.
class LaneExchange : public StepExchange {
 public:
  // `groups`, which outlive it, are each of all workers: lane i uses number i modulo how many there
  // are, so that what one lane waits for delays no other. None: there is one worker.
  LaneExchange(std::span<Collective* const> groups, MonotonicClock& clock);

  // Begins a step of so many lanes. Lanes of one micro-batch, which stand behind each other, are
  // summed before the micro-batches are: one is what another worker could have. `micro_batches`
  // [lanes] ascend.
  void BeginStep(std::span<const uint32_t> micro_batches);
  // Waits until nothing is under way any more; behind a failure of the step, `status`, it ends what
  // is. The first failure of all.
  Status EndStep(const Status& status);

  size_t lanes() const override { return micro_batches_.size(); }
  uint32_t workers() const override { return queues_.empty() ? 1 : queues_[0]->group().size(); }
  Ticket GiveToSum(size_t lane, std::span<const double> values) override;
  Status TakeSum(Ticket ticket, std::span<double> sum) override;
  Ticket Start(size_t lane, std::function<Status(Collective*)> work) override;
  Status Wait(Ticket ticket) override;
  StepWatch* watch() const override { return watch_; }
  void set_watch(StepWatch* watch) { watch_ = watch; }  // Null: nobody.

 private:
  struct Sum {
    std::vector<std::vector<double>> given;  // [lanes]
    size_t lanes_given = 0;
    Ticket started = 0;        // Of the gathering.
    std::vector<double> mine;  // Over the lanes.
    std::vector<double> all;   // [workers, values]
    bool added = false;        // `mine` is over the workers too.
  };

  void AddLanes(Sum* sum) const;
  void AddWorkers(Sum* sum) const;

  std::vector<std::unique_ptr<CollectiveQueue>> queues_;  // [groups]
  StepWatch* watch_ = nullptr;
  std::vector<uint32_t> micro_batches_;
  std::deque<Sum> sums_;           // Of the step, by ticket.
  std::vector<size_t> lane_sums_;  // [lanes]: how many sums each has given to.
  Status alone_;                   // With one worker: the first failure of a work.
};

}  // namespace hdps
