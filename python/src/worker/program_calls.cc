// Takes the interpreter's lock for each call.
#include "python/src/worker/program_calls.h"

#include <pybind11/pybind11.h>

#include <string_view>
#include <utility>

#include "python/src/arguments.h"

namespace hdps::python {
namespace py = pybind11;

ProgressListener WaitingLines::Listener() {
  ProgressListener listener;
  if (show_.is_none()) return listener;
  listener.notice = [this](const std::string& line) { Add("notice", line); };
  listener.warning = [this](const std::string& line) { Add("warning", line); };
  if (py::cast<bool>(show_.attr("live"))) {
    listener.progress = [this](const std::string& line) { Add("progress", line); };
  }
  return listener;
}

void WaitingLines::Add(const char* method, const std::string& text) {
  constexpr size_t kLinesMax = 10'000;  // Of a program that computes for hours.
  MutexLock lock(mutex_);
  const bool progress = method == std::string_view("progress");
  if (progress) {
    std::erase_if(lines_,
                  [](const Line& line) { return line.method == std::string_view("progress"); });
  }
  if (lines_.size() == kLinesMax) lines_.pop_front();
  lines_.push_back({method, text});
  waiting_ = true;
}

void WaitingLines::Show() {
  if (!waiting_) return;
  std::deque<Line> lines;
  {
    MutexLock lock(mutex_);
    lines.swap(lines_);
    waiting_ = false;
  }
  for (const Line& line : lines) show_.attr(line.method)(ToText(line.text));
}

Result<std::string> ProgramCalls::State() {
  const py::gil_scoped_acquire held;
  if (state_.is_none()) return std::string();
  if (before_) before_();
  try {
    return BytesOf(state_(), "state()");
  } catch (...) {
    raised_ = std::current_exception();
  }
  return Status(Code::kUnavailable, "the program's function for its state has raised an exception");
}

bool ProgramCalls::GiveUp() {
  if (raised_) return true;
  const py::gil_scoped_acquire held;
  if (PyErr_CheckSignals() == 0) return false;
  raised_ = std::make_exception_ptr(py::error_already_set());
  return true;
}

void ProgramCalls::RaiseIfAnyRaised() {
  if (raised_) std::rethrow_exception(std::exchange(raised_, nullptr));
}

void ProgramCalls::SetState(py::object state) {
  if (!state.is_none() && PyCallable_Check(state.ptr()) == 0) {
    RaiseTypeError(std::string("state is a ") + Py_TYPE(state.ptr())->tp_name +
                   ": expected a function that returns bytes, or None");
  }
  state_ = std::move(state);
}

std::string BytesOf(const py::handle& given, const std::string& where) {
  Py_buffer view;
  if (py::isinstance<py::str>(given) || PyObject_GetBuffer(given.ptr(), &view, PyBUF_SIMPLE) != 0) {
    PyErr_Clear();
    RaiseTypeError(where + ": expected bytes, not " + Py_TYPE(given.ptr())->tp_name);
  }
  std::string bytes(static_cast<const char*>(view.buf), static_cast<size_t>(view.len));
  PyBuffer_Release(&view);
  return bytes;
}

}  // namespace hdps::python
