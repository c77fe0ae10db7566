// Binds hdps.export, and what a model gives to other programs: its vectors and its exports.
#include <pybind11/pybind11.h>

#include <memory>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "common/base/nearest_name.h"
#include "common/platform/executor.h"
#include "common/platform/file_system.h"
#include "python/src/arguments.h"
#include "python/src/arrays.h"
#include "python/src/bindings.h"
#include "python/src/cells/columns_in.h"
#include "python/src/entry.h"
#include "python/src/model.h"
#include "python/src/status.h"
#include "tools/export/export.h"
#include "tools/export/vectors/table_vectors.h"

namespace hdps::python {
namespace py = pybind11;
namespace {

// Returns the index of `value` among the words.
size_t WordAt(const std::string& what, const std::string& value,
              const std::vector<std::string>& words) {
  std::string list;
  for (size_t i = 0; i < words.size(); ++i) {
    if (value == words[i]) return i;
    list += (i == 0 ? "" : i + 1 == words.size() ? " or " : ", ") + ("\"" + words[i] + "\"");
  }
  RaiseMistake(what + "=\"" + value + "\": expected " + list + DidYouMean(value, words));
}

// Returns paths as a list for SplitFileList.
std::string FileListOf(const py::object& paths) {
  std::string list;
  if (paths.is_none()) return list;
  for (const std::string& path : PathsOf(paths)) {
    const bool quoted = path.find(',') != std::string::npos;
    list += (list.empty() ? "" : ",") + (quoted ? "\"" + path + "\"" : path);
  }
  return list;
}

py::str Export(const py::object& checkpoint, const py::object& out, const std::string& format,
               const std::string& which, const py::object& data, const std::string& weights,
               uint64_t shard_bytes, const std::string& tables, uint64_t max_rows,
               const py::object& items, const std::string& item_text, const std::string& index) {
  ExportRequest request;
  request.common.checkpoint = PathOf(checkpoint);
  request.common.out = PathOf(out);
  request.common.data = FileListOf(data);
  request.common.which = WordAt("which", which, {"best", "newest"}) == 0 ? WhichCheckpoint::kBest
                                                                         : WhichCheckpoint::kNewest;
  request.format = format;
  constexpr DType kWeights[] = {DType::kFp32, DType::kFp16, DType::kBf16};
  request.weights = kWeights[WordAt("weights", weights, {"f32", "f16", "bf16"})];
  if (shard_bytes == 0) RaiseMistake("shard_bytes=0: expected a number of bytes");
  request.shard_bytes = shard_bytes;
  request.tables_inside = WordAt("tables", tables, {"inside", "outside"}) == 0;
  request.max_rows = max_rows;
  request.items = FileListOf(items);
  request.item_text = item_text;
  request.index = index;
  std::ostringstream told;
  RaiseUnlessOk(InLibrary([&] {
    const std::unique_ptr<FileSystem> files = NewPosixFileSystem();
    const std::unique_ptr<Executor> executor = NewTbbExecutor(0);
    return RunExport(request, *files, *executor, told);
  }));
  return ToText(told.str());
}

Array Vectors(HeldModel& model, Tower tower, const py::object& data) {
  const std::unique_ptr<TableVectors> made =
      ValueOf(InLibrary([&] { return TableVectors::New(*model.scorer, tower, *model.executor); }));
  const auto table = TableOfRows(data, ColumnsNeeded(made->columns(), /*labels=*/false));
  std::vector<float> vectors = ValueOf(InLibrary([&] { return made->Of(table); }));
  const auto dim = static_cast<int64_t>(made->dim());
  const int64_t rows = static_cast<int64_t>(vectors.size()) / dim;
  return Array::Of(std::move(vectors), {rows, dim});
}

constexpr const char* kExportDoc =
    R"(Writes a checkpoint as a folder that programs without hdps read.

checkpoint: a checkpoint's folder, or the folder of results of a run; `which` as in Model.open().
out: the folder to make; one that is there is refused.
format: "safetensors", "onnx", or "vectors" for the items of a two_tower model.
data: paths of rows that keys without a row are counted in, in place of the job's evaluation data.
weights: "f32", "f16" or "bf16", of tables (safetensors).
shard_bytes: length from which tensors go into several files.
tables, max_rows: rows "inside" the model, or "outside" their sums as inputs; rows at most (onnx).
items, item_text, index: paths of items, the column of their texts, "exact" or "hnsw32" (vectors).

Returns what `hdps export` prints. Raises JobError for a mistake, RunError for a damaged checkpoint.

>>> import hdps, tempfile
>>> folder = tempfile.mkdtemp()
>>> made = hdps.generate(folder, rows=500, eval_rows=100)
>>> _ = hdps.train(made["job"], folder + "/run", quiet=True)
>>> "model.safetensors" in __import__("os").listdir(
...     hdps.export(folder + "/run", folder + "/model") and folder + "/model")
True
)";

constexpr const char* kItemsDoc =
    R"(Returns the vectors of items of a two_tower model: float32 [n, dim], of length 1.

data: rows as for predict(), of which only the columns of items need be there.

The product with a user's vector, plus the bias, is the model's logit. A key without a row reads as
the model was opened with. Raises JobError if the model is no two_tower.

>>> import hdps, tempfile
>>> folder = tempfile.mkdtemp()
>>> with open(folder + "/t.csv", "w") as file:
...     _ = file.write("".join(f"{i % 2},u{i % 5},i{i % 7}\n" for i in range(70)))
>>> job = hdps.Job({"data": {"format": "csv", "train": [folder + "/t.csv"], "columns": [
...     {"name": "click", "type": "label"}, {"name": "user", "type": "categorical"},
...     {"name": "item", "type": "categorical"}]},
...     "model": {"type": "two_tower", "user_features": ["user"], "item_features": ["item"],
...     "hidden": [8], "embedding_dim": 4}})
>>> _ = hdps.train(job, folder + "/run", quiet=True)
>>> model = hdps.Model.open(folder + "/run")
>>> model.item_vectors({"item": ["i1", "i2", "new"]}).shape
(3, 8)
)";

}  // namespace

void AddVectors(py::class_<HeldModel, ModelPointer>& model) {
  model
      .def(
          "item_vectors",
          [](HeldModel& held, const py::object& data) { return Vectors(held, Tower::kItem, data); },
          py::arg("data"), kItemsDoc)
      .def(
          "user_vectors",
          [](HeldModel& held, const py::object& data) { return Vectors(held, Tower::kUser, data); },
          py::arg("data"),
          "Returns the vectors of users of a two_tower model: float32 [n, dim].\n\n"
          "Their length is 1 by the temperature. Arguments and errors are those of "
          "item_vectors().\n")
      .def(
          "export",
          [](const HeldModel& held, const py::object& out, const py::kwargs& options) {
            const py::object path = ToFileName(held.scorer->checkpoint().folder);
            return py::module_::import("hdps._hdps").attr("export")(path, out, **options);
          },
          py::arg("out"), "Writes the checkpoint for other programs: see hdps.export().\n");
}

void AddExport(py::module_& module) {
  module.def("export", &Export, py::arg("checkpoint"), py::arg("out"), py::kw_only(),
             py::arg("format") = "safetensors", py::arg("which") = "best",
             py::arg("data") = py::none(), py::arg("weights") = "f32",
             py::arg("shard_bytes") = uint64_t{4} << 30, py::arg("tables") = "inside",
             py::arg("max_rows") = uint64_t{1000000}, py::arg("items") = py::none(),
             py::arg("item_text") = "", py::arg("index") = "", kExportDoc);
}

}  // namespace hdps::python
