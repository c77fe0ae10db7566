// Keeps the exception classes and raises them.
#include "python/src/status.h"

#include <string>

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
  PyErr_SetString(status.code() == Code::kInvalidArgument ? g_job_error : g_run_error,
                  status.message().c_str());
  throw py::error_already_set();
}

}  // namespace hdps::python
