// Turns the status of a call into a Python exception.
#pragma once

#include <pybind11/pybind11.h>

#include <utility>

#include "common/base/status.h"

namespace hdps::python {

// Adds the exceptions to the module: HdpsError, and its children JobError (what the operator can
// mend: exit status 2 of the commands) and RunError (the world failed: 3).
void AddExceptions(pybind11::module_& module);

// Raises the exception of a status that is not ok. Requires: the interpreter's lock is held.
[[noreturn]] void Raise(const Status& status);
inline void RaiseUnlessOk(const Status& status) {
  if (!status.ok()) Raise(status);
}
template <typename T>
T ValueOf(Result<T> result) {
  RaiseUnlessOk(result.status());
  return *std::move(result);
}

}  // namespace hdps::python
