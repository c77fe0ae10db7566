// The exchange of a worker's lanes with each other and, on a thread of its own, with other workers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "common/base/bounded_queue.h"
#include "common/base/status.h"
#include "common/base/thread_annotations.h"
#include "common/platform/executor.h"
#include "worker/exchange/collective.h"
#include "worker/model/step_exchange.h"

namespace hdps {

// Calls come from one thread, that which computes the lanes; the thread of its own makes the calls
// of the group, one after the other in the order in which they were started.
//
// Invariant: between EndStep() and the next Begin..() the group is not in use.
class LaneExchange : public StepExchange {
 public:
  // `group`, which outlives it, is of all workers; null: there is one.
  explicit LaneExchange(Collective* group);
  ~LaneExchange() override;

  // Begins a step of so many lanes. Lanes of one group, which stand behind each other, are summed
  // before the groups are: a group is what another worker could have. `groups` [lanes] ascend.
  void BeginStep(std::span<const uint32_t> groups);
  // Waits until nothing is under way any more, also behind a failure.
  void EndStep() HDPS_EXCLUDES(mutex_);

  size_t lanes() const override { return groups_.size(); }
  uint32_t workers() const override { return group_ == nullptr ? 1 : group_->size(); }
  Ticket GiveToSum(size_t lane, std::span<const double> values) override;
  Status TakeSum(Ticket ticket, std::span<double> sum) override;
  Ticket Start(size_t lane, std::function<Status(Collective*)> work) override;
  Status Wait(Ticket ticket) override HDPS_EXCLUDES(mutex_);

 private:
  struct Sum {
    std::vector<std::vector<double>> given;  // [lanes]
    size_t lanes_given = 0;
    Ticket started = 0;        // Of the gathering.
    std::vector<double> mine;  // Over the lanes.
    std::vector<double> all;   // [workers, values]
    bool added = false;        // `mine` is over the workers too.
  };

  void RunAll();  // The thread's.
  void AddLanes(Sum* sum) const;
  void AddWorkers(Sum* sum) const;

  Collective* const group_;
  std::vector<uint32_t> groups_;
  std::deque<Sum> sums_;           // Of the step, by ticket.
  std::vector<size_t> lane_sums_;  // [lanes]: how many sums each has given to.
  uint64_t started_ = 0;           // Works, since the beginning.

  BoundedQueue<std::function<Status(Collective*)>> queue_;
  Mutex mutex_;
  ConditionVariable changed_;
  uint64_t ended_ HDPS_GUARDED_BY(mutex_) = 0;
  Status failure_ HDPS_GUARDED_BY(mutex_);  // The first; the group is of no more use then.
  std::unique_ptr<Thread> thread_;          // Null with one worker. Last: all else is there.
};

}  // namespace hdps
