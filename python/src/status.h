// Turns the status of a call into a Python exception.
#pragma once

#include <pybind11/pybind11.h>

#include <cstdint>
#include <string>
#include <utility>

#include "common/base/status.h"

namespace hdps::python {

// Adds the exceptions to the module: HdpsError, and its children JobError (what the operator can
// mend: exit status 2 of the commands), RunError (the world failed: 3), and WentBack and Ended of a
// table worker.
void AddExceptions(pybind11::module_& module);

// Raises the exception of a status that is not ok. Requires: the interpreter's lock is held.
[[noreturn]] void Raise(const Status& status);
// Raises WentBack with its attributes, and Ended.
[[noreturn]] void RaiseWentBack(const std::string& message, int64_t step,
                                const pybind11::object& restored);
[[noreturn]] void RaiseEnded(const std::string& message);
// Is true for the two.
bool SaysStanding(const pybind11::error_already_set& error);
inline void RaiseUnlessOk(const Status& status) {
  if (!status.ok()) Raise(status);
}
template <typename T>
T ValueOf(Result<T> result) {
  RaiseUnlessOk(result.status());
  return *std::move(result);
}

}  // namespace hdps::python
