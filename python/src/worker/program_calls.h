// Passes what a table worker asks of the program in Python, inside of that program's own calls.
#pragma once

#include <pybind11/pybind11.h>

#include <atomic>
#include <deque>
#include <exception>
#include <functional>
#include <string>
#include <utility>

#include "common/base/status.h"
#include "common/base/thread_annotations.h"
#include "scheduler/report/progress_listener.h"

namespace hdps::python {

// Lines of a run that other threads write, until a thread of Python shows them: a thread of the
// run must not wait for the interpreter's lock.
//
// Invariant: of lines of progress only the latest waits.
class WaitingLines {
 public:
  // `show` has the methods notice, warning and progress and says whether it is `live`, or is None.
  explicit WaitingLines(pybind11::object show) : show_(std::move(show)) {}

  // Returns what writes the lines. Requires: the interpreter's lock is held.
  ProgressListener Listener();
  // Shows the lines that wait. Requires: the interpreter's lock is held.
  void Show() HDPS_EXCLUDES(mutex_);

 private:
  struct Line {
    const char* method;
    std::string text;
  };
  void Add(const char* method, const std::string& text) HDPS_EXCLUDES(mutex_);

  const pybind11::object show_;
  std::atomic<bool> waiting_ = false;
  Mutex mutex_;
  std::deque<Line> lines_ HDPS_GUARDED_BY(mutex_);
};

// The state of a program, and its signals. Called on the caller's thread, which does not have the
// interpreter's lock.
//
// Invariant: what Python raised is kept until RaiseIfAnyRaised(), and nothing is asked meanwhile.
class ProgramCalls {
 public:
  // Returns the bytes of the program's state; none are "". An error says that Python has raised.
  Result<std::string> State();
  // Says whether a wait is to end, because a signal has raised.
  bool GiveUp();
  // Keeps an exception that another callback has raised.
  void Keep(std::exception_ptr raised) { raised_ = std::move(raised); }
  // Raises what was raised. Requires: the interpreter's lock is held.
  void RaiseIfAnyRaised();
  bool raised() const { return raised_ != nullptr; }

  // Requires: the interpreter's lock is held.
  const pybind11::object& state() const { return state_; }
  void SetState(pybind11::object state);
  // Is called before each call of the state.
  void SetBefore(std::function<void()> before) { before_ = std::move(before); }

 private:
  std::function<void()> before_;
  pybind11::object state_ = pybind11::none();  // None: the program has no state.
  std::exception_ptr raised_;
};

// Returns the bytes of an object with a buffer, such as bytes. Raises TypeError, which begins with
// `where`.
std::string BytesOf(const pybind11::handle& given, const std::string& where);

}  // namespace hdps::python
