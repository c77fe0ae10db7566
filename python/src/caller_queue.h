// Runs calls of other threads on the thread that called into the library from Python.
#pragma once

#include <atomic>
#include <deque>
#include <exception>
#include <functional>

#include "common/base/thread_annotations.h"

namespace hdps::python {

// Callbacks of a run. Python's signals are noticed on the main thread alone, and what a callback
// raises must come out of the call that it belongs to, so callbacks run on the caller's thread.
//
// Invariant: calls run one after the other, in the order of Post(), under the interpreter's lock.
// After the first that raises, and after a signal that raises, `stop` is true. After a
// KeyboardInterrupt that is raised while it is, `end_now` is true as well.
class CallerQueue {
 public:
  using Call = std::function<void()>;

  // Any thread without the interpreter's lock.
  void Post(Call call) HDPS_EXCLUDES(mutex_);
  // Waits until no call is left. The threads that train wait here after each step, so that the
  // queue stays short, and a callback that stops the run stops it soon.
  void WaitUntilDone() HDPS_EXCLUDES(mutex_);
  // Ends Serve() after the calls that are left.
  void Close() HDPS_EXCLUDES(mutex_);

  // Runs calls until Close(). Called on the caller's thread without the interpreter's lock.
  void Serve() HDPS_EXCLUDES(mutex_);
  // Raises what a call or a signal raised. Requires: Serve() has returned, and the interpreter's
  // lock is held.
  void RaiseIfAnyRaised();

  const std::atomic<bool>& stop() const { return stop_; }
  const std::atomic<bool>& end_now() const { return end_now_; }
  void Stop() { stop_ = true; }

 private:
  // Returns false once the queue is closed and empty.
  bool WaitForCall(Call* call) HDPS_EXCLUDES(mutex_);
  void Run(const Call& call);

  std::atomic<bool> stop_ = false, end_now_ = false;
  std::exception_ptr raised_;  // Used by the caller's thread alone.
  Mutex mutex_;
  ConditionVariable changed_;
  std::deque<Call> calls_ HDPS_GUARDED_BY(mutex_);
  bool running_ HDPS_GUARDED_BY(mutex_) = false;
  bool closed_ HDPS_GUARDED_BY(mutex_) = false;
};

}  // namespace hdps::python
