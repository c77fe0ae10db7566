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

}  // namespace

void AddExceptions(py::module_& module) {
  static py::exception<void> base(module, "HdpsError");
  static py::exception<void> job(module, "JobError", base.ptr());
  static py::exception<void> run(module, "RunError", base.ptr());
  base.attr("__doc__") = "The base of all errors that hdps raises.";
  job.attr("__doc__") =
      "A mistake that the caller can mend. The text is the command line's: place, value, what "
      "would be right.";
  run.attr("__doc__") = "The world failed beyond what the job's policy survives.";
  g_job_error = job.ptr();
  g_run_error = run.ptr();
}

void Raise(const Status& status) {
  const bool mistaken = ExitStatusOf(status.code()) == kExitMistaken;
  const std::string& text = status.message();
  // A message may hold bytes of a file's name that are no UTF-8.
  const auto message = py::reinterpret_steal<py::object>(
      PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), "backslashreplace"));
  if (message) PyErr_SetObject(mistaken ? g_job_error : g_run_error, message.ptr());
  throw py::error_already_set();
}

}  // namespace hdps::python
