// Declares what each file of the module adds to it.
#pragma once

#include <pybind11/pybind11.h>

namespace hdps::python {

void AddJob(pybind11::module_& module);

}  // namespace hdps::python
