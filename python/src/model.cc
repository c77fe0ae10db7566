// Binds hdps.Model: a checkpoint that scores rows.
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common/base/nearest_name.h"
#include "common/platform/executor.h"
#include "common/platform/file_system.h"
#include "common/platform/monotonic_clock.h"
#include "python/src/arguments.h"
#include "python/src/arrays.h"
#include "python/src/bindings.h"
#include "python/src/cells/columns_in.h"
#include "python/src/entry.h"
#include "python/src/job.h"
#include "python/src/model.h"
#include "python/src/status.h"

namespace hdps::python {
namespace py = pybind11;
namespace {

// Returns which of two words `value` is.
bool IsSecond(const std::string& what, const std::string& value, const std::string& first,
              const std::string& second) {
  if (value != first && value != second) {
    RaiseMistake(what + "=\"" + value + "\": expected \"" + first + "\" or \"" + second + "\"" +
                 DidYouMean(value, {first, second}));
  }
  return value == second;
}

ModelPointer Open(const py::object& path, const std::string& which, const std::string& unknown,
                  int threads) {
  const std::string folder = PathOf(path);
  const bool newest = IsSecond("which", which, "best", "newest");
  const bool zero = IsSecond("unknown", unknown, "initial", "zero");
  RequireThreads(threads);
  auto held = std::make_shared<HeldModel>();
  held->scorer = ValueOf(InLibrary([&] {
    held->executor = NewTbbExecutor(threads);
    return RowScorer::Open(*held->files, folder,
                           newest ? WhichCheckpoint::kNewest : WhichCheckpoint::kBest,
                           zero ? UnknownKeys::kZero : UnknownKeys::kInitial, *held->executor);
  }));
  return held;
}

// ---- Rows.

bool IsPath(py::handle value) {
  return py::isinstance<py::str>(value) || py::hasattr(value, "__fspath__");
}

bool IsListOfPaths(const py::object& data) {
  if (!py::isinstance<py::list>(data) && !py::isinstance<py::tuple>(data)) return false;
  for (const py::handle item : data) {
    if (!IsPath(item)) return false;
  }
  return true;
}

std::shared_ptr<const ColumnTable> TableOfData(const RowScorer& scorer, const py::object& data) {
  return TableOfRows(data, ColumnsNeeded(scorer.columns(), /*labels=*/false));
}

Array Score(HeldModel& model, const py::object& data, ScoreForm form) {
  RowScorer& scorer = *model.scorer;
  std::vector<float> scores;
  if (IsPath(data) || IsListOfPaths(data)) {
    scores =
        ValueOf(InLibrary([&, paths = PathsOf(data)] { return scorer.ScoreFiles(paths, form); }));
  } else {
    scores = ValueOf(InLibrary(
        [&, table = TableOfData(scorer, data)] { return scorer.ScoreTable(table, form); }));
  }
  const auto a_row = static_cast<int64_t>(scorer.scores_a_row());
  const int64_t rows = static_cast<int64_t>(scores.size()) / a_row;
  return Array::Of(std::move(scores),
                   a_row == 1 ? std::vector<int64_t>{rows} : std::vector<int64_t>{rows, a_row});
}

// Returns the seconds that the library takes for predictions of the rows, each time anew: what
// benchmarks/python_predict.py compares predict() with.
std::vector<double> SecondsOfScoring(HeldModel& model, const py::object& data, int times) {
  return ValueOf(InLibrary([&, table = TableOfData(*model.scorer, data)] {
    const std::unique_ptr<MonotonicClock> clock = NewSystemClock();
    Result<std::vector<double>> seconds = std::vector<double>();
    for (int i = 0; i < times && seconds.ok(); ++i) {
      const int64_t begin_ns = clock->NowNs();
      const auto scores = model.scorer->ScoreTable(table, ScoreForm::kPredictions);
      seconds->push_back(static_cast<double>(clock->NowNs() - begin_ns) * 1e-9);
      if (!scores.ok()) seconds = scores.status();
    }
    return seconds;
  }));
}

py::object JobOf(const HeldModel& model) {
  auto held = std::make_shared<HeldJob>();
  held->text = {model.scorer->checkpoint().folder, model.scorer->checkpoint().manifest.job_json};
  held->job = model.job();
  return py::cast(held);
}

constexpr const char* kModelDoc = R"(A trained model: a checkpoint in memory, which scores rows.

Made by Model.open(). Several threads may use one model: calls run side by side, and each has the
dense layers of its own while rows of tables are shared.
)";

constexpr const char* kOpenDoc = R"(Opens a checkpoint; every file of it is verified.

path: a checkpoint's folder, or the folder of results of a run.
which: "best" by evaluation, or "newest"; for a run's folder.
unknown: how a key without a row reads: "initial", as in training, or "zero", as in exported tables.
threads: of all calls together; 0 for one a core. As many calls run at once, and others wait.

Raises JobError for a mistake, and RunError for a damaged checkpoint.
)";

constexpr const char* kPredictDoc =
    R"(Returns the predictions of rows, as `hdps predict` prints them: float32 [n].

A prediction is a probability; [n, classes] under softmax and [n, tasks] where there are several. It
is a number under squared_error, and a score that only orders rows under bpr and sampled_softmax.

data: a dict from column names to lists or arrays, an Arrow table or a data frame (what has
    __arrow_c_stream__, or pandas), a path, or a list of paths. Files are read as the job's data.
    Columns of labels, weights and groups are not needed, and columns that the job does not name
    are passed over. None, NaN and "" are missing values. A feature of several values takes a list
    a row, or an array of two axes.

Raises JobError, which names columns that are missing, or the first row that cannot be read with its
column, and TypeError for objects that are no columns or cells.
)";

constexpr const char* kLogitsDoc =
    R"(Returns what predict() makes predictions of: float32, of the same shape.

Logits under logloss, bpr and softmax; under squared_error and sampled_softmax the predictions.
Arguments and errors are those of predict().
)";

}  // namespace

std::string WithExample(const std::string& doc, const std::string& lines) {
  return doc + R"(
>>> import hdps, tempfile
>>> folder = tempfile.mkdtemp()
>>> made = hdps.generate(folder, rows=500, eval_rows=100)
>>> _ = hdps.train(made["job"], folder + "/run", quiet=True)
>>> model = hdps.Model.open(folder + "/run")
)" + lines;
}

void AddModel(py::module_& module) {
  py::class_<HeldModel, ModelPointer> model(
      module, "Model", WithExample(kModelDoc, ">>> sorted(model.tables)\n['wide']\n").c_str());
  model
      .def_static("open", &Open, py::arg("path"), py::arg("which") = "best",
                  py::arg("unknown") = "initial", py::arg("threads") = 0,
                  WithExample(kOpenDoc, ">>> model.step > 0\nTrue\n").c_str())
      .def(
          "predict",
          [](HeldModel& held, const py::object& data) {
            return Score(held, data, ScoreForm::kPredictions);
          },
          py::arg("data"),
          WithExample(kPredictDoc,
                      ">>> rows = {f\"I{i}\": [3, None] for i in range(1, 14)}\n"
                      ">>> rows.update({f\"C{i}\": [\"5\", 7] for i in range(1, 27)})\n"
                      ">>> model.predict(rows).shape\n(2,)\n")
              .c_str())
      .def(
          "logits",
          [](HeldModel& held, const py::object& data) {
            return Score(held, data, ScoreForm::kLogits);
          },
          py::arg("data"),
          WithExample(kLogitsDoc, ">>> model.logits(folder + \"/eval.tsv\").dtype\n'float32'\n")
              .c_str())
      .def_property_readonly("job", &JobOf, "The job that wrote the checkpoint, an hdps.Job.")
      .def_property_readonly(
          "step", [](const HeldModel& held) { return held.scorer->checkpoint().manifest.clock; },
          "The number of steps of training in the checkpoint.")
      .def_property_readonly(
          "checkpoint",
          [](const HeldModel& held) {
            return py::module_::import("os").attr("fsdecode")(
                py::bytes(held.scorer->checkpoint().folder));
          },
          "The checkpoint's folder.")
      .def("__repr__", [](const HeldModel& held) {
        return py::str("<hdps.Model {!r}, step {}>")
            .format(held.job().name, held.scorer->checkpoint().manifest.clock);
      });
  AddTables(model);
  AddVectors(model);
  module.def("seconds_of_scoring", &SecondsOfScoring, py::arg("model"), py::arg("data"),
             py::arg("times"),
             "Returns the seconds of predict() without Python, once for each of `times`.");
}

}  // namespace hdps::python
