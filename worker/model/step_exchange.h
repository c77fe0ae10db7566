// What the lanes of a step and the workers give each other in the middle of a pass.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>

#include "common/base/status.h"

namespace hdps {

class StepWatch;   // step_watch.h
class Collective;  // worker/collective/collective.h: only handed on here.

// Of one step: its lanes are parts of one worker's batch, computed in turns by one thread.
//
// Every lane of every worker makes the same calls with the same lengths in the same order, also one
// without examples. What is given to work that has been started stays as it is until Wait() for it
// has returned.
//
// Invariant: what comes out is a function of what was given, whatever came first. N workers of one
// lane get the bits of one worker with N lanes.
class StepExchange {
 public:
  using Ticket = uint64_t;

  virtual ~StepExchange() = default;
  virtual size_t lanes() const = 0;
  virtual uint32_t workers() const = 0;

  // The sum of the values over the lanes in their order, and over the workers in that of their
  // ranks, beginning with a copy of the first. -0.0 leaves what it is added to as it is. `values`
  // is read before the call returns. The sum is made when the last lane has given.
  virtual Ticket GiveToSum(size_t lane, std::span<const double> values) = 0;
  // Waits for it; `sum` is as long as the values. All lanes have given.
  virtual Status TakeSum(Ticket ticket, std::span<double> sum) = 0;

  // Runs `work` with a group of all workers while the lanes compute, behind all that was started
  // for this lane before. With one worker it is run at once, with no group: null.
  virtual Ticket Start(size_t lane, std::function<Status(Collective*)> work) = 0;
  // kUnavailable, kCancelled: of the first work of the lane that failed; what was started behind it
  // is not run.
  virtual Status Wait(Ticket ticket) = 0;
  // Who is told of segments and exchanges; null: nobody.
  virtual StepWatch* watch() const { return nullptr; }
};

}  // namespace hdps
