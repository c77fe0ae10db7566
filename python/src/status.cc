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
