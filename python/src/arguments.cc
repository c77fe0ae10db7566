// Converts by Python's own modules os and json.
#include "python/src/arguments.h"

#include <utility>

#include "python/src/status.h"

namespace hdps::python {
namespace py = pybind11;
namespace {

std::string TypeNameOf(const py::handle& value) { return Py_TYPE(value.ptr())->tp_name; }

bool IsListOrTuple(const py::handle& value) {
  return py::isinstance<py::list>(value) || py::isinstance<py::tuple>(value);
}

}  // namespace

std::string PathOf(const py::handle& path) {
  const py::bytes bytes = py::module_::import("os").attr("fsencode")(path);
  std::string text = bytes;
  if (text.find('\0') != std::string::npos) throw py::value_error("a path holds a zero byte");
  return text;
}

std::vector<std::string> PathsOf(const py::handle& paths) {
  if (!IsListOrTuple(paths)) return {PathOf(paths)};
  std::vector<std::string> all;
  for (const py::handle path : paths) all.push_back(PathOf(path));
  return all;
}

std::string JsonOf(const py::handle& value, const std::string& where) {
  const py::object dumps = py::module_::import("json").attr("dumps");
  try {
    // A text with half a surrogate pair is written as an escape, and refused by the reader.
    return py::cast<std::string>(dumps(value, py::arg("allow_nan") = false));
  } catch (py::error_already_set& error) {
    const bool no_json = error.matches(PyExc_TypeError) || error.matches(PyExc_ValueError) ||
                         error.matches(PyExc_RecursionError);
    if (!no_json) throw;
    RaiseMistake(where + ": " + py::cast<std::string>(py::str(error.value())) +
                 "; expected dicts, lists, texts, finite numbers, booleans and None");
  }
}

py::object FromJson(const std::string& text) {
  return py::module_::import("json").attr("loads")(py::bytes(text));
}

std::vector<std::string> TextsOf(const py::handle& texts, const std::string& where) {
  if (py::isinstance<py::str>(texts)) return {py::cast<std::string>(texts)};
  if (!IsListOrTuple(texts)) {
    RaiseTypeError(where + ": expected a text or a list of texts, not " + TypeNameOf(texts));
  }
  std::vector<std::string> all;
  for (const py::handle text : texts) {
    if (!py::isinstance<py::str>(text)) {
      RaiseTypeError(where + ": expected texts, not " + TypeNameOf(text));
    }
    all.push_back(py::cast<std::string>(text));
  }
  return all;
}

void RaiseMistake(const std::string& message) { Raise(Status(Code::kInvalidArgument, message)); }

void RaiseTypeError(const std::string& message) { throw py::type_error(message); }

}  // namespace hdps::python
