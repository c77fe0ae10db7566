// Serves calls, and looks for signals in between.
#include "python/src/caller_queue.h"

#include <pybind11/pybind11.h>

#include <chrono>
#include <utility>

namespace hdps::python {
namespace py = pybind11;
namespace {

// A signal sets a flag of the interpreter and wakes nobody.
constexpr std::chrono::milliseconds kLookForSignalsEvery(50);

}  // namespace

void CallerQueue::Post(Call call) {
  MutexLock lock(mutex_);
  calls_.push_back(std::move(call));
  changed_.notify_all();
}

void CallerQueue::WaitUntilDone() {
  MutexLock lock(mutex_);
  while (running_ || !calls_.empty()) changed_.wait(mutex_);
}

void CallerQueue::Close() {
  MutexLock lock(mutex_);
  closed_ = true;
  changed_.notify_all();
}

void CallerQueue::Serve() {
  Call call;
  while (WaitForCall(&call)) {
    Run([&call] {
      if (PyErr_CheckSignals() != 0) throw py::error_already_set();
      if (call) call();
    });
    MutexLock lock(mutex_);
    running_ = false;
    changed_.notify_all();
  }
}

bool CallerQueue::WaitForCall(Call* call) {
  *call = nullptr;
  MutexLock lock(mutex_);
  if (calls_.empty() && !closed_) changed_.wait_for(mutex_, kLookForSignalsEvery);
  if (calls_.empty()) return !closed_;
  *call = std::move(calls_.front());
  calls_.pop_front();
  running_ = true;
  return true;
}

void CallerQueue::Run(const Call& call) {
  const py::gil_scoped_acquire held;
  try {
    call();
  } catch (const py::error_already_set& error) {
    const bool interrupted = error.matches(PyExc_KeyboardInterrupt);
    if (interrupted && stop()) end_now_ = true;
    if (!raised_ || interrupted) raised_ = std::current_exception();
    Stop();
  } catch (...) {
    if (!raised_) raised_ = std::current_exception();
    Stop();
  }
}

void CallerQueue::RaiseIfAnyRaised() {
  if (raised_) std::rethrow_exception(std::exchange(raised_, nullptr));
}

}  // namespace hdps::python
