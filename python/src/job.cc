// Binds hdps.Job: a checked job, from a file or from a dict.
#include "python/src/job.h"

#include <pybind11/stl.h>

#include <memory>
#include <utility>

#include "common/base/nearest_name.h"
#include "common/job/job_file.h"
#include "common/job/spec/table_spec.h"
#include "common/platform/file_system.h"
#include "python/src/arguments.h"
#include "python/src/bindings.h"
#include "python/src/entry.h"
#include "python/src/status.h"

namespace hdps::python {
namespace py = pybind11;

void AddOverrides(const py::dict& set, const std::string& prefix, std::vector<std::string>* to) {
  for (const auto& [key, value] : set) {
    if (!py::isinstance<py::str>(key)) {
      RaiseMistake("set: the key " + TextOf(py::repr(key)) +
                   " is no text: expected names of settings, such as \"train.epochs\"");
    }
    const std::string name = TextOf(key);
    if (name.empty() || name.find('=') != std::string::npos) {
      RaiseMistake("set: \"" + prefix + name +
                   "\" is no name of a setting, such as \"train.epochs\"");
    }
    if (py::isinstance<py::dict>(value)) {
      AddOverrides(py::reinterpret_borrow<py::dict>(value), prefix + name + ".", to);
    } else {
      to->push_back(prefix + name + "=" + JsonOf(value, "set: " + prefix + name));
    }
  }
}

namespace {

using JobPointer = std::shared_ptr<HeldJob>;

// Fills in the job of the text.
JobPointer Checked(JobPointer held) {
  held->job = ValueOf(InLibrary([&held] {
    const std::unique_ptr<FileSystem> files = NewPosixFileSystem();
    return LoadJob(*files, held->text, held->overrides);
  }));
  return held;
}

JobPointer LoadFile(const py::object& path, const py::dict& set) {
  auto held = std::make_shared<HeldJob>();
  AddOverrides(set, "", &held->overrides);
  held->text = ValueOf(InLibrary([name = PathOf(path)] {
    const std::unique_ptr<FileSystem> files = NewPosixFileSystem();
    return ReadWrittenJob(*files, name);
  }));
  return Checked(std::move(held));
}

JobPointer FromDict(const py::dict& settings, const py::dict& set) {
  auto held = std::make_shared<HeldJob>();
  held->text = {"the dict", JsonOf(settings, "the dict")};
  AddOverrides(set, "", &held->overrides);
  return Checked(std::move(held));
}

py::object Show(const HeldJob& held) {
  return py::str("<hdps.Job {!r} of {}>")
      .attr("format")(ToText(held.job.name), ToFileName(held.text.origin));
}

py::list WarningsOf(const HeldJob& held) {
  py::list warnings;
  for (const std::string& warning : held.job.warnings) warnings.append(ToText(warning));
  return warnings;
}

constexpr const char* kJobDoc = R"(A checked job: what to train, on what data, and how.

Job(settings) takes the keys of a job file (docs/job_file.md) as a dict; relative paths of its data
are searched from the working directory. Raises JobError with the text of the command line.

>>> hdps.Job({"model": {"type": "nothing"}})
Traceback (most recent call last):
hdps.JobError: ...
)";

constexpr const char* kLoadDoc =
    R"(Reads a job file, with the settings of `set` in place of its own.

`set` names settings by dotted paths or by dicts in dicts: {"train.epochs": 2} is
{"train": {"epochs": 2}}. Relative paths of data are searched from the folder of the file, then from
the working directory. Raises JobError.
)";

}  // namespace

std::shared_ptr<HeldJob> WithSets(const HeldJob& job, const py::dict& sets) {
  auto held = std::make_shared<HeldJob>();
  held->text = job.text;
  held->overrides = job.overrides;
  AddOverrides(sets, "", &held->overrides);
  return Checked(std::move(held));
}

TableId TableNamed(const Job& job, const std::string& name) {
  std::vector<std::string> known;
  for (uint32_t t = 0; t < job.tables.size(); ++t) {
    if (job.tables[t].dense) continue;
    if (job.tables[t].name == name) return {t};
    known.push_back(job.tables[t].name);
  }
  std::string list;
  for (const std::string& table : known) list += (list.empty() ? "" : ", ") + table;
  RaiseMistake("there is no table \"" + name + "\"" + DidYouMean(name, known) +
               "; expected one of " + list);
}

void AddJob(py::module_& module) {
  py::class_<HeldJob, JobPointer>(module, "Job", kJobDoc)
      .def(py::init(&FromDict), py::arg("settings"), py::arg("set") = py::dict())
      .def_static("load", &LoadFile, py::arg("path"), py::arg("set") = py::dict(), kLoadDoc)
      .def_property_readonly(
          "name", [](const HeldJob& held) { return ToText(held.job.name); }, "The job's name.")
      .def_property_readonly("warnings", &WarningsOf,
                             "Settings without effect and the like, a text each.")
      .def(
          "to_dict", [](const HeldJob& held) { return FromJson(PrintJob(held.job)); },
          "Returns all settings with their defaults, as nested dicts.")
      .def("__repr__", &Show)
      .attr("__module__") = "hdps";
}

}  // namespace hdps::python
