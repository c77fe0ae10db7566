// Defines the module hdps._hdps out of the parts in bindings.h.
#include "python/src/bindings.h"
#include "python/src/status.h"

PYBIND11_MODULE(_hdps, module) {
  module.doc() = "The compiled part of hdps; use the package hdps.";
  hdps::python::AddExceptions(module);
  hdps::python::LogToTerminal();
  hdps::python::AddArray(module);
  hdps::python::AddJob(module);
  hdps::python::AddModel(module);
  hdps::python::AddTrain(module);
  hdps::python::AddDataTools(module);
  hdps::python::AddExport(module);
  hdps::python::AddConnection(module);
  hdps::python::AddClient(module);
  hdps::python::AddReading(module);
  hdps::python::AddTableWorker(module);
  hdps::python::AddTableRuns(module);
}
