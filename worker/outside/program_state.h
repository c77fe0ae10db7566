// Keeps bytes of the callers of table workers as rows of the job's dense table.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "common/base/ids.h"
#include "common/base/status.h"
#include "worker/exchange/node_channel.h"

namespace hdps {

struct Job;

// The rows of one worker are the tensor with the number of its rank. Its first chunk says of which
// clock the state is, and how long it is; the bytes follow from the second chunk on, three in each
// float, because every number below 2^24 is a float that is finite. Its last possible chunk says
// at which clock the worker has finished.
//
// Invariant: what Read() returns is what Store() was given for this very clock, so rows that an
// earlier or longer state has left behind are never taken for a part of it.
class ProgramState {
 public:
  // Requires: `job` and `channel` outlive it; the last table of `job` is its dense one.
  ProgramState(const Job& job, NodeChannel& channel) : job_(job), channel_(channel) {}

  Status Store(uint32_t rank, Clock clock, const std::string& bytes);
  // Returns none if there is no state of `clock`.
  Result<std::optional<std::string>> Read(uint32_t rank, Clock clock);

  // Stores that this worker has finished at `clock`, after the job was begun or loaded at `base`.
  Status StoreFinish(Clock base, Clock clock);
  // Takes that back, so that the rows do not tell at which clock the job was begun or loaded.
  Status DropFinish(Clock clock);
  // Returns the largest clock at which a worker has finished, if all workers have since `base`.
  Result<std::optional<Clock>> ReadFinishes(Clock base);

  // Passes the gate of step `clock` as a pull for training does, for which one row is asked: it is
  // answered when every other worker has finished the steps that train.mode demands.
  // This worker has sent its pushes of all clocks before `pushed`.
  Ticket AskAtGate(Clock clock, Clock pushed);

 private:
  const Job& job_;
  NodeChannel& channel_;
};

}  // namespace hdps
