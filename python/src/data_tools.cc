// Binds what commands do with files beside training: prepare, generate, report.
#include <pybind11/stl.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/platform/file_system.h"
#include "python/src/arguments.h"
#include "python/src/bindings.h"
#include "python/src/entry.h"
#include "python/src/status.h"
#include "tools/prepare/prepare_files.h"
#include "tools/report/report_file.h"
#include "tools/synthetic/generated_files.h"

namespace hdps::python {
namespace py = pybind11;
namespace {

py::tuple Prepare(const py::object& files, const py::object& out, const std::string& label,
                  const py::object& eval, const std::string& model, const std::string& task,
                  const std::string& positive, const py::object& categorical,
                  const py::object& numeric, const py::object& multi, const py::object& skip,
                  const std::string& group, const std::string& weight, int64_t min_count,
                  const std::string& split, std::optional<uint64_t> max_bad_rows) {
  PrepareRequest request;
  request.files = PathsOf(files);
  request.eval = PathsOf(eval);
  request.out = PathOf(out);
  request.model = model;
  request.task = task;
  request.min_count = min_count;
  request.split = split;
  request.data.label = label;
  request.data.group = group;
  request.data.weight = weight;
  request.data.positive = positive;
  request.data.categorical = TextsOf(categorical, "categorical");
  request.data.numeric = TextsOf(numeric, "numeric");
  request.data.multi = TextsOf(multi, "multi");
  request.data.skip = TextsOf(skip, "skip");
  request.data.max_bad_rows = max_bad_rows;
  const PreparedFiles made = ValueOf(InLibrary([&request] {
    const std::unique_ptr<FileSystem> system = NewPosixFileSystem();
    return PrepareFiles(*system, request);
  }));
  return py::make_tuple(ToFileName(made.job), ToText(made.report));
}

py::dict Generate(const py::object& out, const std::string& kind, const std::string& format,
                  const std::string& model, const SyntheticLogSpec& spec,
                  std::optional<double> noise) {
  GenerateRequest request;
  request.out = PathOf(out);
  request.kind = kind;
  request.format = format;
  request.model = model;
  request.log = spec;
  request.noise = noise;
  const GeneratedFiles made = ValueOf(InLibrary([&request] {
    const std::unique_ptr<FileSystem> system = NewPosixFileSystem();
    return GenerateFiles(*system, request);
  }));
  py::dict told;
  told["job"] = ToFileName(made.job);
  for (const auto& [name, value] : made.figures) told[py::str(name)] = value;
  return told;
}

py::tuple Report(const py::object& runs, const py::object& html) {
  const std::vector<std::string> folders = PathsOf(runs);
  const std::string path = html.is_none() ? "" : PathOf(html);
  const ReportFile report = ValueOf(InLibrary([&] {
    const std::unique_ptr<FileSystem> system = NewPosixFileSystem();
    return WriteReport(*system, folders, path);
  }));
  return py::make_tuple(ToFileName(report.path), ToText(report.page));
}

}  // namespace

void AddDataTools(py::module_& module) {
  module.def("prepare", &Prepare, py::arg("files"), py::arg("out"), py::kw_only(), py::arg("label"),
             py::arg("eval"), py::arg("model"), py::arg("task"), py::arg("positive"),
             py::arg("categorical"), py::arg("numeric"), py::arg("multi"), py::arg("skip"),
             py::arg("group"), py::arg("weight"), py::arg("min_count"), py::arg("split"),
             py::arg("max_bad_rows"), "Writes a job for files; returns its path and the report.");
  module.def(
      "generate",
      [](const py::object& out, const std::string& kind, const std::string& format,
         const std::string& model, uint64_t rows, uint64_t eval_rows, uint32_t numeric,
         uint32_t categorical, uint64_t vocabulary, double zipf, uint64_t seed, double signal,
         double ctr, std::optional<double> noise, double missing) {
        SyntheticLogSpec spec;
        spec.rows = rows;
        spec.eval_rows = eval_rows;
        spec.numeric = numeric;
        spec.categorical = categorical;
        spec.vocabulary = vocabulary;
        spec.zipf = zipf;
        spec.seed = seed;
        spec.signal = signal;
        spec.ctr = ctr;
        spec.missing = missing;
        return Generate(out, kind, format, model, spec, noise);
      },
      py::arg("out"), py::kw_only(), py::arg("kind"), py::arg("format"), py::arg("model"),
      py::arg("rows"), py::arg("eval_rows"), py::arg("numeric"), py::arg("categorical"),
      py::arg("vocabulary"), py::arg("zipf"), py::arg("seed"), py::arg("signal"), py::arg("ctr"),
      py::arg("noise"), py::arg("missing"),
      "Writes synthetic data and a job; returns its path and the best figures.");
  module.def("report", &Report, py::arg("runs"), py::arg("html"),
             "Writes the page of one run or two; returns its path and text.");
}

}  // namespace hdps::python
