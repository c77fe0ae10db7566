// Declares what each file of the module adds to it.
#pragma once

#include <pybind11/pybind11.h>

namespace hdps::python {

void AddArray(pybind11::module_& module);
void AddJob(pybind11::module_& module);
void AddModel(pybind11::module_& module);
void AddTrain(pybind11::module_& module);
void AddDataTools(pybind11::module_& module);  // prepare, generate, report
void AddExport(pybind11::module_& module);
void AddConnection(pybind11::module_& module);
void AddClient(pybind11::module_& module);
void AddReading(pybind11::module_& module);
void AddTableWorker(pybind11::module_& module);
void AddTableRuns(pybind11::module_& module);  // join_tables, local_tables

// Sends the warnings of the library to stderr, as commands do that have no log of their own.
void LogToTerminal();

}  // namespace hdps::python
