// Keeps the exception classes and raises them.
#include "python/src/status.h"

#include <string>

#include "common/base/exit_status.h"

namespace hdps::python {
namespace py = pybind11;
namespace {

// Live as long as the interpreter.
PyObject* g_job_error = nullptr;
PyObject* g_run_error = nullptr;
PyObject* g_went_back = nullptr;
PyObject* g_ended = nullptr;

// Returns the text; a message may hold bytes of a file's name that are no UTF-8.
py::object TextOfMessage(const std::string& text) {
  return py::reinterpret_steal<py::object>(
      PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), "backslashreplace"));
}

}  // namespace

void AddExceptions(py::module_& module) {
  // They live as long as the interpreter: never deleted, because it ends before global objects do.
  const auto add = [&module](const char* name, PyObject* base, const char* doc) {
    const auto* const made = new py::exception<void>(module, name, base);
    made->attr("__doc__") = doc;
    made->attr("__module__") = "hdps";  // Where users find it.
    return made->ptr();
  };
  PyObject* const base =
      add("HdpsError", PyExc_Exception, "The base of all errors that hdps raises.");
  g_job_error = add("JobError", base,
                    "A mistake that the caller can mend. The text is the command line's: place, "
                    "value, what would be right.");
  g_run_error = add("RunError", base, "The world failed beyond what the job's policy survives.");
  g_went_back =
      add("WentBack", base,
          "The job of a Worker went back to a checkpoint, whose number of steps is `step` "
          "and whose state of this worker is `restored`, bytes or None. The next call "
          "goes on from there.");
  g_ended = add("Ended", base, "The job of a Worker has ended: by train.max_steps or a stop.");
}

void Raise(const Status& status) {
  const bool mistaken = ExitStatusOf(status.code()) == kExitMistaken;
  const py::object message = TextOfMessage(status.message());
  if (message) PyErr_SetObject(mistaken ? g_job_error : g_run_error, message.ptr());
  throw py::error_already_set();
}

void RaiseWentBack(const std::string& message, int64_t step, const py::object& restored) {
  const py::object error = py::handle(g_went_back)(TextOfMessage(message));
  error.attr("step") = step;
  error.attr("restored") = restored;
  PyErr_SetObject(g_went_back, error.ptr());
  throw py::error_already_set();
}

void RaiseEnded(const std::string& message) {
  const py::object text = TextOfMessage(message);
  if (text) PyErr_SetObject(g_ended, text.ptr());
  throw py::error_already_set();
}

bool SaysStanding(const py::error_already_set& error) {
  return error.matches(g_went_back) || error.matches(g_ended);
}

}  // namespace hdps::python
