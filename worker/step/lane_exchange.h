// Exchanges values between the lanes of a worker and, through collectives, with other workers.
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

namespace hdps {

class SpanRecorder;

// Belongs to the thread that computes the lanes; each collective runs on a queue's own thread.
//
// Invariant: between EndStep() and the next BeginStep() no group is in use.
class LaneExchange : public StepExchange {
 public:
  // Each of `groups` joins all workers and must outlive the exchange. Lane i uses group i modulo
  // their number, so that a wait in one lane does not delay the others. With no groups there is one
  // worker.
  LaneExchange(std::span<Collective* const> groups, MonotonicClock& clock);

  // Begins a step. `micro_batches` [lanes] names the micro-batch of each lane and never decreases.
  // Sums the lanes of each micro-batch first and then the micro-batches, because a micro-batch
  // corresponds to one worker: this order gives the same bits as that many workers would.
  void BeginStep(std::span<const uint32_t> micro_batches);
  // Ends a step: waits until no collective is running, and aborts them first if `status`, the
  // outcome of the step, is an error. Returns the first error of all, `status` included.
  Status EndStep(const Status& status);

  size_t lanes() const override { return micro_batches_.size(); }
  uint32_t workers() const override { return queues_.empty() ? 1 : queues_[0]->group().size(); }
  Ticket GiveToSum(size_t lane, std::span<const double> values) override;
  Status TakeSum(Ticket ticket, std::span<double> sum) override;
  Ticket Start(size_t lane, std::function<Status(Collective*)> work) override;
  Status Wait(Ticket ticket) override;
  SpanRecorder* recorder() const override { return recorder_; }
  void set_recorder(SpanRecorder* recorder) { recorder_ = recorder; }  // May be null.

 private:
  struct Sum {
    std::vector<std::vector<double>> given;  // [lanes]
    size_t lanes_given = 0;
    Ticket started = 0;        // Ticket of the gathering.
    std::vector<double> mine;  // Sum over this worker's lanes.
    std::vector<double> all;   // [workers, values]
    bool added = false;        // `mine` is the sum over the workers too.
  };

  void AddLanes(Sum* sum) const;
  void AddWorkers(Sum* sum) const;

  std::vector<std::unique_ptr<CollectiveQueue>> queues_;  // [groups]
  SpanRecorder* recorder_ = nullptr;
  std::vector<uint32_t> micro_batches_;
  std::deque<Sum> sums_;           // Sums of the step, by ticket.
  std::vector<size_t> lane_sums_;  // [lanes]: number of sums that each lane has given to.
  Status alone_;                   // With one worker: the first error of any work.
};

}  // namespace hdps
