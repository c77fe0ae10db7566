// A table worker as Python holds it.
#pragma once

#include <pybind11/pybind11.h>

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "python/src/job.h"
#include "python/src/worker/program_calls.h"
#include "worker/outside/table_worker.h"

namespace hdps::python {

// Holds a table worker in what it runs in: a process of its own, or a cluster within this process.
class TableSeat {
 public:
  virtual ~TableSeat() = default;
  virtual TableWorker& worker() = 0;
  // Ends the worker as TableProcess::Leave does, and waits for what it ran in if it was the last
  // there. Not called twice; worker() is void afterwards. Returns why the job has failed, if it has
  // and that is known.
  virtual Status Leave(const Status& failure) = 0;
};

// Rows that Python has pulled.
struct HeldRows {
  const void* puller;  // The worker that pulled them, by which others know that they did not.
  bool look = false;
  std::string table;
  PulledRows rows;
  // Positions of `rows`, as Python's libraries take them; empty until they are asked for.
  std::vector<int64_t> positions;
};
using RowsPointer = std::shared_ptr<HeldRows>;

// Calls a worker out of Python: one call at a time, without the interpreter's lock.
//
// Invariant: a status becomes the exception that says how the job stands, and the worker goes on
// with the call after it.
class HeldWorker {
 public:
  // `calls` are those that the options of the seat's worker name.
  HeldWorker(std::shared_ptr<HeldJob> job, std::unique_ptr<ProgramCalls> calls,
             std::shared_ptr<WaitingLines> lines, std::unique_ptr<TableSeat> seat);
  ~HeldWorker();
  HeldWorker(const HeldWorker&) = delete;
  HeldWorker& operator=(const HeldWorker&) = delete;

  // Each list is the name of a table and keys.
  pybind11::list Pull(const pybind11::list& asked, bool train);
  void Prefetch(const pybind11::list& asked);
  void Push(const HeldRows& rows, const pybind11::object& gradients, bool each);
  void PushKeys(const std::string& table, const pybind11::object& keys,
                const pybind11::object& gradients);
  void Store(const std::string& table, const pybind11::object& keys, const pybind11::object& rows);
  void Advance(const pybind11::object& examples);
  void GiveUp();
  void Checkpoint(const pybind11::object& extra);
  void Report(const pybind11::list& figures);
  void Finish(const pybind11::object& evaluate);
  // Leaves the job, which hears `reason` unless it has ended. Does nothing after the first time.
  void Close(const std::string& reason);

  uint32_t rank() const { return rank_; }
  uint32_t workers() const { return workers_; }
  Clock clock() const { return clock_; }
  bool evaluation_due() const { return evaluation_due_; }
  bool ended() const { return ends_; }  // The job has ended.
  // Bytes of keys, rows and gradients that were copied, here and in the worker, up to the last
  // call.
  uint64_t copied_bytes() const { return copied_here_ + copied_below_; }
  void CountCopy(size_t bytes) { copied_here_ += bytes; }
  const std::shared_ptr<HeldJob>& job() const { return job_; }
  pybind11::dict tables() const;
  pybind11::object restored() const { return restored_; }
  const pybind11::object& state() const { return calls_->state(); }
  void SetState(const pybind11::object& state) { calls_->SetState(state); }

 private:
  class InCall;

  // Does the work in the library, and raises what is to be raised. `name` is that of the call.
  void Call(const char* name, const std::function<Status(TableWorker&)>& work);
  // Raises if the worker has left, or another call runs.
  void RequireFree(const char* name) const;
  // Copies what is asked between calls and within callbacks. Any thread in a call.
  void Note();
  void SetRestored();
  // Raises what a call raises whose status says that it was cancelled.
  [[noreturn]] void RaiseStanding();
  // Leaves the seat. Requires: a call is running, or none can.
  Status Leave(const Status& failure, const std::string& because);
  Result<OutsideFigures> Evaluate(const pybind11::object& evaluate);

  const std::shared_ptr<HeldJob> job_;
  const std::unique_ptr<ProgramCalls> calls_;
  const std::shared_ptr<WaitingLines> lines_;
  std::unique_ptr<TableSeat> seat_;  // Null: the worker has left.
  std::string left_because_;
  bool ended_ = false;                          // It has left a job that has ended.
  std::atomic<const char*> in_call_ = nullptr;  // The name of the call that runs.
  bool in_evaluate_ = false;                    // Inside of Finish(), whose calls are these.
  std::atomic<uint32_t> rank_ = 0, workers_ = 0;
  std::atomic<Clock> clock_ = 0;
  std::atomic<bool> evaluation_due_ = false, ends_ = false;
  uint64_t copied_here_ = 0;
  std::atomic<uint64_t> copied_below_ = 0;
  pybind11::object restored_;
};

}  // namespace hdps::python
