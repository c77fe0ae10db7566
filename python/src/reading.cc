// Binds the reader of a job's data: batches as arrays without a copy.
#include <pybind11/stl.h>

#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/base/thread_annotations.h"
#include "common/job/job_facts.h"
#include "common/job/spec/data_spec.h"
#include "common/platform/executor.h"
#include "common/platform/file_system.h"
#include "common/platform/monotonic_clock.h"
#include "python/src/arguments.h"
#include "python/src/arrays.h"
#include "python/src/bindings.h"
#include "python/src/entry.h"
#include "python/src/job.h"
#include "python/src/status.h"
#include "python/src/values/columns_in.h"
#include "worker/step/job_data.h"

namespace hdps::python {
namespace py = pybind11;
namespace {

// The data of a job and what reads them. Threads take turns.
class DataReader {
 public:
  DataReader(Job job, int threads)
      : executor_(NewTbbExecutor(threads)),
        data_(std::move(job), *files_, *clock_, executor_.get()) {}

  Result<std::unique_ptr<BatchStream>> Read(const DataPart& part) HDPS_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    return data_.Read(part);
  }
  FeatureNames Names() HDPS_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    return FeaturesOf(data_.job().data);
  }

 private:
  const std::unique_ptr<FileSystem> files_ = NewPosixFileSystem();
  const std::unique_ptr<MonotonicClock> clock_ = NewSystemClock();
  const std::unique_ptr<Executor> executor_;
  Mutex mutex_;
  JobData data_ HDPS_GUARDED_BY(mutex_);
};
using ReaderPointer = std::shared_ptr<DataReader>;

// A batch that its arrays keep.
struct HeldBatch {
  std::shared_ptr<const Batch> batch;
  std::shared_ptr<const std::vector<std::string>> names;  // [sparse features]

  int64_t size() const { return batch->num_examples; }
  Array Labels() const {
    std::vector<int64_t> shape = {size()};
    if (batch->num_labels != 1) shape.push_back(batch->num_labels);
    return Array::Over(batch, batch->labels, std::move(shape));
  }
  Array Numeric() const { return Array::Over(batch, batch->numeric, {size(), batch->num_numeric}); }
  // Weights or groups of the examples.
  template <typename T>
  std::optional<Array> OfExamples(const std::vector<T>& values) const {
    if (values.empty()) return std::nullopt;
    return Array::Over(batch, values, {size()});
  }
  py::dict Features() const;
};

// One sparse feature of a batch.
struct HeldFeature {
  std::shared_ptr<const Batch> batch;
  const SparseColumn& column;  // Of the batch.

  int64_t size() const { return static_cast<int64_t>(column.keys.size()); }
  Array Keys() const { return Array::Over(batch, column.keys, {size()}); }
  std::optional<Array> Weights() const {
    if (column.weights.empty()) return std::nullopt;
    return Array::Over(batch, column.weights, {size()});
  }
  Array Offsets() const {
    const auto count = static_cast<int64_t>(column.offsets.size());
    return Array::Of(std::vector<int64_t>(column.offsets.begin(), column.offsets.end()), {count});
  }
  Array Lengths() const {
    std::vector<int64_t> lengths(batch->num_examples);
    for (size_t i = 0; i < lengths.size(); ++i) {
      lengths[i] = int64_t{column.offsets[i + 1]} - column.offsets[i];
    }
    return Array::Of(std::move(lengths), {batch->num_examples});
  }
};

py::dict HeldBatch::Features() const {
  py::dict features;
  for (size_t f = 0; f < batch->sparse.size(); ++f) {
    features[ToText((*names)[f])] = HeldFeature{batch, batch->sparse[f]};
  }
  return features;
}

// An epoch's batches of one worker.
//
// Invariant: `position` is that of the next batch.
class Batches {
 public:
  Batches(ReaderPointer reader, std::unique_ptr<BatchStream> stream, const DataPart& part)
      : reader_(std::move(reader)),
        stream_(stream.release()),
        epoch_(part.epoch),
        step_(part.skip_steps) {
    FeatureNames names = reader_->Names();
    names_ = std::make_shared<const std::vector<std::string>>(std::move(names.sparse));
    columns_ = std::move(names.numeric);
  }
  ~Batches() {
    if (Forked()) return;
    const py::gil_scoped_release released;  // The reader finishes its batch.
    stream_.reset();
  }
  Batches(const Batches&) = delete;
  Batches& operator=(const Batches&) = delete;

  HeldBatch Next() {
    std::optional<ReadBatch> read = ValueOf(InLibrary([this] { return stream_->Next(); }));
    if (!read) throw py::stop_iteration();
    ++step_;
    bad_rows_ = read->bad_rows;
    return {std::make_shared<const Batch>(std::move(read->batch)), names_};
  }
  std::pair<uint32_t, uint64_t> position() const { return {epoch_, step_}; }
  uint64_t bad_rows() const { return bad_rows_; }
  const std::vector<std::string>& columns() const { return columns_; }

 private:
  const ReaderPointer reader_;
  std::unique_ptr<BatchStream, DeleteUnlessForked<BatchStream>> stream_;  // Reads from reader_.
  std::shared_ptr<const std::vector<std::string>> names_;                 // [sparse features]
  std::vector<std::string> columns_;                                      // [numeric columns]
  const uint32_t epoch_;
  uint64_t step_;
  uint64_t bad_rows_ = 0;
};

// Raises JobError unless 0 <= value <= max.
template <typename T>
T Bounded(const char* name, int64_t value, T max) {
  if (value >= 0 && static_cast<uint64_t>(value) <= static_cast<uint64_t>(max)) {
    return static_cast<T>(value);
  }
  RaiseMistake(std::string(name) + "=" + std::to_string(value) +
               " is out of range; give a number from 0 to " + std::to_string(max));
}

// `rows` has tables that stand for the files of data.train and data.eval, by "train" and "eval".
ReaderPointer NewReader(const HeldJob& held, const py::dict& rows, int64_t threads) {
  constexpr int kThreadsMax = 4096;
  const int checked = Bounded("threads", threads, kThreadsMax);
  Job job = held.job;
  for (const auto& [name, table] : rows) {
    const std::string set = TextOf(name), path = "memory:" + set;
    job.data.tables[path] = TableOfRows(py::reinterpret_borrow<py::object>(table),
                                        ColumnsNeeded(job.data, /*labels=*/true));
    (set == kTrainedName ? job.data.train : job.data.eval) = {path};
  }
  const Entry entry;
  return {new DataReader(std::move(job), checked), DeleteUnlessForked<DataReader>()};
}

std::unique_ptr<Batches> Read(const ReaderPointer& reader, const std::string& which,
                              std::pair<int64_t, int64_t> part, int64_t epoch, int64_t skip_steps) {
  constexpr uint32_t kMax = std::numeric_limits<uint32_t>::max();
  const DataPart wanted{which, Bounded("part: rank", part.first, kMax),
                        Bounded("part: workers", part.second, kMax), Bounded("epoch", epoch, kMax),
                        Bounded("skip_steps", skip_steps, kMax)};
  std::unique_ptr<BatchStream> stream = ValueOf(InLibrary([&] { return reader->Read(wanted); }));
  return std::make_unique<Batches>(reader, std::move(stream), wanted);
}

void AddBatch(py::module_& module) {
  py::class_<HeldFeature>(module, "Feature", "The values of one sparse feature in a Batch.")
      .def_property_readonly("keys", &HeldFeature::Keys,
                             "uint64 [k]: the keys of all examples, one after another.")
      .def_property_readonly(
          "offsets", &HeldFeature::Offsets,
          "int64 [n + 1]: the keys of example i are keys[offsets[i]:offsets[i + 1]].")
      .def_property_readonly("lengths", &HeldFeature::Lengths,
                             "int64 [n]: the number of keys of each example.")
      .def_property_readonly("weights", &HeldFeature::Weights,
                             "float32 [k]: the weight of each key; None: all are 1.")
      .attr("__module__") = "hdps";
  py::class_<HeldBatch>(module, "Batch",
                        "The examples of one worker in one step; a Batches gives them.")
      .def_property_readonly("labels", &HeldBatch::Labels,
                             "float32 [n]; with several label columns [n, labels].")
      .def_property_readonly("numeric", &HeldBatch::Numeric,
                             "float32 [n, numeric columns], as Batches.columns names them.")
      .def_property_readonly("features", &HeldBatch::Features,
                             "The sparse features: a dict of a Feature by its name.")
      .def_property_readonly(
          "weights", [](const HeldBatch& self) { return self.OfExamples(self.batch->weights); },
          "float32 [n]: the weight of each example; None: all are 1.")
      .def_property_readonly(
          "groups", [](const HeldBatch& self) { return self.OfExamples(self.batch->groups); },
          "uint64 [n]: the group of each example; None: the data have no group column.")
      .def("__len__", &HeldBatch::size)
      .attr("__module__") = "hdps";
}

}  // namespace

void AddReading(py::module_& module) {
  AddBatch(module);
  py::class_<Batches>(module, "Batches", R"(An epoch's batches of one worker; read() makes it.

It is an iterator, whose thread reads some batches ahead.
)")
      .def("__iter__", [](const py::object& self) { return self; })
      .def("__next__", &Batches::Next)
      .def_property_readonly("position", &Batches::position,
                             "The epoch and the step of the next batch, both from 0.")
      .def_property_readonly("bad_rows", &Batches::bad_rows,
                             "Rows that were left out so far: data.max_bad_rows.")
      .def_property_readonly(
          "columns",
          [](const Batches& self) {
            py::list names;
            for (const std::string& name : self.columns()) names.append(ToText(name));
            return names;
          },
          "The names of the numeric columns of a batch, in their order.")
      .attr("__module__") = "hdps";
  py::class_<DataReader, ReaderPointer>(module, "DataReader",
                                        "A job's data: read() gives the batches of an epoch.")
      .def(py::init(&NewReader), py::arg("job"), py::arg("rows"), py::arg("threads"))
      .def("read", &Read, py::arg("which"), py::arg("part"), py::arg("epoch"),
           py::arg("skip_steps"));
}

}  // namespace hdps::python
