// Exchanges values between the lanes of a step and between workers in the middle of a pass.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>

#include "common/base/status.h"

namespace hdps {

class SpanRecorder;  // common/telemetry/span_recorder.h
class Collective;    // worker/collective/collective.h; only passed on here.

// The exchange of one step, whose lanes are parts of one worker's batch; one thread computes them
// in turns.
//
// Every lane of every worker must make the same calls with the same lengths in the same order, even
// without examples. Data given to started work must not change until Wait() for it has returned.
//
// Invariant: results are functions of the values given, not of their timing. N workers with one
// lane get the same bits as one worker with N lanes.
class StepExchange {
 public:
  using Ticket = uint64_t;

  virtual ~StepExchange() = default;
  virtual size_t lanes() const = 0;
  virtual uint32_t workers() const = 0;

  // Starts a sum of the values over the lanes in order, then over the workers by rank, beginning
  // with a copy of the first. -0.0 leaves a sum as it is. `values` is read before the call returns.
  // The sum is computed when the last lane has given its values.
  virtual Ticket GiveToSum(size_t lane, std::span<const double> values) = 0;
  // Waits for the sum; it has the length of the values. Requires: all lanes have given.
  virtual Status TakeSum(Ticket ticket, std::span<double> sum) = 0;

  // Runs `work` with a group of all workers while the lanes compute, after all work started earlier
  // for this lane. With one worker it runs at once, and the group is null.
  virtual Ticket Start(size_t lane, std::function<Status(Collective*)> work) = 0;
  // Waits for the work. kUnavailable, kCancelled: error of the lane's first work that failed; later
  // work is not run.
  virtual Status Wait(Ticket ticket) = 0;
  // Records segments and exchanges; null: none.
  virtual SpanRecorder* recorder() const { return nullptr; }
};

}  // namespace hdps
