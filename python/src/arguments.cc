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

std::string TextOf(const py::handle& text) {
  Py_ssize_t bytes = 0;
  const char* const data = PyUnicode_AsUTF8AndSize(text.ptr(), &bytes);
  if (data == nullptr) throw py::error_already_set();
  return {data, static_cast<size_t>(bytes)};
}

py::str ToText(const std::string& text) {
  return py::bytes(text).attr("decode")("utf-8", "backslashreplace");
}

py::str ToFileName(const std::string& path) {
  return py::module_::import("os").attr("fsdecode")(py::bytes(path));
}

std::string JsonOf(const py::handle& value, const std::string& where) {
  const py::object dumps = py::module_::import("json").attr("dumps");
  try {
    // A text with half a surrogate pair is written as an escape, and refused by the reader.
    return TextOf(dumps(value, py::arg("allow_nan") = false));
  } catch (py::error_already_set& error) {
    const bool no_json = error.matches(PyExc_TypeError) || error.matches(PyExc_ValueError) ||
                         error.matches(PyExc_RecursionError);
    if (!no_json) throw;
    RaiseMistake(where + ": " + TextOf(py::str(error.value())) +
                 "; expected dicts, lists, texts, finite numbers, booleans and None");
  }
}

py::object FromJson(const std::string& text) {
  return py::module_::import("json").attr("loads")(py::bytes(text));
}

std::vector<std::string> TextsOf(const py::handle& texts, const std::string& where) {
  if (py::isinstance<py::str>(texts)) return {TextOf(texts)};
  if (!IsListOrTuple(texts)) {
    RaiseTypeError(where + ": expected a text or a list of texts, not " + TypeNameOf(texts));
  }
  std::vector<std::string> all;
  for (const py::handle text : texts) {
    if (!py::isinstance<py::str>(text)) {
      RaiseTypeError(where + ": expected texts, not " + TypeNameOf(text));
    }
    all.push_back(TextOf(text));
  }
  return all;
}

void RaiseMistake(const std::string& message) { Raise(Status(Code::kInvalidArgument, message)); }

void RequireThreads(int threads) {
  constexpr int kThreadsMax = 4096;
  if (threads >= 0 && threads <= kThreadsMax) return;
  RaiseMistake("threads=" + std::to_string(threads) +
               " is out of range; give 1 to 4096, or 0 for one per core");
}

void RaiseTypeError(const std::string& message) { throw py::type_error(message); }

}  // namespace hdps::python
