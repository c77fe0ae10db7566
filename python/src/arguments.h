// Converts arguments of Python into what the library takes.
#pragma once

#include <pybind11/pybind11.h>

#include <string>
#include <vector>

namespace hdps::python {

// Returns the bytes of a path: of a text, of bytes, or of an object with __fspath__. Raises
// TypeError for others, and ValueError if it holds a zero byte.
std::string PathOf(const pybind11::handle& path);
// Returns the paths of a list or tuple, or the one path that is given alone.
std::vector<std::string> PathsOf(const pybind11::handle& paths);

// Returns a text as UTF-8. Raises UnicodeEncodeError for half a surrogate pair. Requires: a str.
std::string TextOf(const pybind11::handle& text);
// Returns a text of the library; bytes that are no UTF-8, as in the name of a file, are escaped.
pybind11::str ToText(const std::string& text);
// Returns the name of a file as Python has it.
pybind11::str ToFileName(const std::string& path);

// Returns the value as JSON. Raises JobError, which begins with `where`, if it has none, as NaN.
std::string JsonOf(const pybind11::handle& value, const std::string& where);
// Returns the value of a JSON text.
pybind11::object FromJson(const std::string& text);

// Returns the texts of a list or tuple, or the one text that is given alone. Raises TypeError,
// which begins with `where`, for others.
std::vector<std::string> TextsOf(const pybind11::handle& texts, const std::string& where);

// Raises JobError unless it is a number of threads, or 0 for one a core.
void RequireThreads(int threads);

// Raises JobError with this text, or TypeError.
[[noreturn]] void RaiseMistake(const std::string& message);
[[noreturn]] void RaiseTypeError(const std::string& message);

}  // namespace hdps::python
