// Binds hdps.Job: a checked job, from a file or from a dict.
#include "python/src/job.h"

#include <memory>
#include <utility>

#include "common/job/job_file.h"
#include "common/platform/file_system.h"
#include "python/src/bindings.h"
#include "python/src/status.h"

namespace hdps::python {
namespace py = pybind11;
namespace {

py::object Json() { return py::module_::import("json"); }

// "key.path=value" of each item, with values as JSON but for texts, which stand as they are.
std::vector<std::string> OverridesOf(const py::dict& set) {
  std::vector<std::string> overrides;
  for (const auto& [key, value] : set) {
    const py::object text = py::isinstance<py::str>(value)
                                ? py::reinterpret_borrow<py::object>(value)
                                : Json().attr("dumps")(value);
    overrides.push_back(py::cast<std::string>(key) + "=" + py::cast<std::string>(text));
  }
  return overrides;
}

std::shared_ptr<HeldJob> LoadFile(const std::string& path, const py::dict& set) {
  auto held = std::make_shared<HeldJob>();
  held->path = path;
  held->overrides = OverridesOf(set);
  const std::unique_ptr<FileSystem> files = NewPosixFileSystem();
  held->job = ValueOf(LoadJob(*files, held->path, held->overrides));
  return held;
}

std::shared_ptr<HeldJob> FromDict(const py::dict& settings) {
  auto held = std::make_shared<HeldJob>();
  held->text = py::cast<std::string>(Json().attr("dumps")(settings));
  held->job = ValueOf(ParseJob(held->text, "the dict", {}));
  return held;
}

}  // namespace

void AddJob(py::module_& module) {
  py::class_<HeldJob, std::shared_ptr<HeldJob>>(module, "Job")
      .def(py::init(&FromDict), py::arg("settings"))
      .def_static("load", &LoadFile, py::arg("path"), py::arg("set") = py::dict())
      .def("to_dict", [](const HeldJob& held) { return Json().attr("loads")(PrintJob(held.job)); });
}

}  // namespace hdps::python
