// Binds what hdps.Client needs: rows as a request sends them, answers, and messages over ZeroMQ.
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/base/thread_annotations.h"
#include "common/net/peer_name.h"
#include "common/process/connections.h"
#include "common/protocol/predict/predict_messages.h"
#include "python/src/arguments.h"
#include "python/src/arrays.h"
#include "python/src/bindings.h"
#include "python/src/entry.h"
#include "python/src/status.h"
#include "python/src/values/columns_in.h"
#include "tools/scheduler_question.h"
#include "tools/serve/messages/column_sections.h"
#include "tools/serve/requests/score_request.h"

namespace hdps::python {
namespace py = pybind11;
namespace {

// ---- Rows that are to be sent.

using SentRows = std::shared_ptr<SentCells>;

bool IsOneCell(py::handle value) {
  PyObject* const o = value.ptr();
  return PyUnicode_Check(o) || PyFloat_Check(o) || PyLong_Check(o);
}

SentRows RowsToSend(const py::object& data, const std::vector<std::string>& inputs) {
  auto cells = std::make_shared<SentCells>();
  const auto add = [&](const std::shared_ptr<const ColumnTable>& table) {
    const Status added = InLibrary([&] { return AddCells(*table, inputs, cells.get()); });
    if (!added.ok()) RaiseMistake(added.message());
  };
  std::shared_ptr<const ColumnTable> stream;
  if (py::hasattr(data, "__arrow_c_stream__")) stream = TableOfStream(data, {});
  if (stream != nullptr) {
    add(stream);
  } else if (!py::hasattr(data, "keys") || !py::hasattr(data, "__getitem__")) {
    RaiseTypeError(std::string("data: a ") + Py_TYPE(data.ptr())->tp_name +
                   " has no rows: expected a dict of columns, a data frame or an Arrow table");
  } else {
    for (const std::string& name : inputs) {
      if (!data.contains(name)) continue;
      const py::object value = data[name.c_str()];
      add(TableOfValues(name, IsOneCell(value) ? py::object(py::make_tuple(value)) : value));
    }
  }
  if (!cells->columns.empty() && cells->rows == 0) {
    RaiseMistake("the data have no rows: expected at least one");
  }
  if (!cells->columns.empty()) return cells;
  std::string names;
  for (const std::string& name : inputs) names += (names.empty() ? "" : ", ") + name;
  RaiseMistake("the data have none of the model's inputs: expected " + names);
}

// ---- Tensors of the Open Inference Protocol.

// Takes the columns one after the other, as bytes of the binary tensor extension.
class TensorWriter {
 public:
  explicit TensorWriter(const SentCells& cells) : cells_(cells) {}

  // Returns name, datatype, shape and bytes.
  py::tuple Next(const SentColumn& column) {
    std::vector<int64_t> shape = {column.cells};
    std::string bytes;
    const char* type = "BYTES";
    switch (column.form) {
      case CellForm::kIntegers:
        type = "INT64";
        Take(cells_.integers, column.cells, &integers_, &bytes);
        break;
      case CellForm::kFloats:
        type = "FP32";
        Take(cells_.floats, column.cells, &floats_, &bytes);
        break;
      case CellForm::kDoubles:
        type = "FP64";
        Take(cells_.doubles, column.cells, &doubles_, &bytes);
        break;
      case CellForm::kTexts:
        if (column.lists) {
          shape.push_back(TakeLists(column.cells, &bytes));
        } else {
          TakeTexts(column.cells, &bytes);
          ++ends_;
        }
        break;
    }
    return py::make_tuple(ToText(column.name), type, shape, py::bytes(bytes));
  }

 private:
  template <typename T>
  static void Take(const std::vector<T>& from, size_t count, size_t* at, std::string* bytes) {
    bytes->append(reinterpret_cast<const char*>(from.data() + *at), count * sizeof(T));
    *at += count;
  }
  static void AddText(std::string_view text, std::string* bytes) {
    const auto size = static_cast<uint32_t>(text.size());
    bytes->append(reinterpret_cast<const char*>(&size), sizeof(size));
    *bytes += text;
  }
  // Takes texts, but not the number with which the last one ends.
  void TakeTexts(size_t count, std::string* bytes) {
    for (size_t i = 0; i < count; ++i, ++ends_) {
      const uint32_t begin = cells_.ends[ends_], end = cells_.ends[ends_ + 1];
      AddText(std::string_view(cells_.texts).substr(begin, end - begin), bytes);
    }
  }
  // Pads lists to the length of the longest with missing values. Returns this length.
  int64_t TakeLists(size_t count, std::string* bytes) {
    const uint32_t* const ends = cells_.ends.data() + ends_;
    uint32_t longest = 1;
    for (size_t i = 0; i < count; ++i) longest = std::max(longest, ends[i + 1] - ends[i]);
    ends_ += count + 1;
    for (size_t i = 0; i < count; ++i) {
      TakeTexts(ends[i + 1] - ends[i], bytes);
      for (uint32_t pad = ends[i + 1] - ends[i]; pad < longest; ++pad) AddText("", bytes);
    }
    ++ends_;
    return longest;
  }

  const SentCells& cells_;
  size_t ends_ = 0, integers_ = 0, floats_ = 0, doubles_ = 0;
};

py::list TensorsOf(const SentRows& rows) {
  py::list tensors;
  TensorWriter writer(*rows);
  for (const SentColumn& column : rows->columns) tensors.append(writer.Next(column));
  return tensors;
}

std::vector<int64_t> ShapeOf(uint32_t rows, uint32_t width) {
  return width == 1 ? std::vector<int64_t>{rows} : std::vector<int64_t>{rows, width};
}

// Returns the numbers of a tensor of FP32.
Array FloatsOf(const py::bytes& bytes, std::vector<int64_t> shape) {
  const std::string_view from = bytes;
  uint64_t count = 1;
  for (const int64_t length : shape) count *= static_cast<uint64_t>(std::max<int64_t>(length, 0));
  if (from.size() != count * sizeof(float)) {
    Raise(Status(Code::kCorruption, "an output has " + std::to_string(from.size()) +
                                        " bytes, and its shape another number of floats"));
  }
  std::vector<float> floats(count);
  if (count > 0) std::memcpy(floats.data(), from.data(), from.size());
  return Array::Of(std::move(floats), std::move(shape));
}

// Returns arrays of one axis, all as long, as the columns of one array.
Array ColumnsBeside(const std::vector<Array>& columns) {
  const auto rows = static_cast<size_t>(columns.front().size());
  std::vector<float> all(rows * columns.size());
  for (size_t c = 0; c < columns.size(); ++c) {
    if (static_cast<size_t>(columns[c].size()) != rows ||
        columns[c].type() != ArrayType::kFloat32) {
      Raise(Status(Code::kCorruption, "the predictions of several tasks have unequal lengths"));
    }
    const auto* const from = static_cast<const float*>(columns[c].data());
    for (size_t row = 0; row < rows; ++row) all[row * columns.size() + c] = from[row];
  }
  return Array::Of(std::move(all),
                   {static_cast<int64_t>(rows), static_cast<int64_t>(columns.size())});
}

// ---- Messages.

// Invariant: one question at a time; threads that ask meanwhile wait.
class MessageClient {
 public:
  MessageClient(std::unique_ptr<SchedulerConnection> serving, int64_t patience_ms)
      : patience_ms_(patience_ms), serving_(std::move(serving)) {}

  Result<PredictReply> Ask(const PredictRequest& request) HDPS_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    HDPS_ASSIGN_OR_RETURN(PredictReply reply, serving_->Ask<PredictReply>(request, patience_ms_));
    if (reply.code == Code::kOk) return reply;
    // The caller mends a request for what is not there or too much, as over HTTP.
    const bool mistaken = reply.code == Code::kNotFound || reply.code == Code::kResourceExhausted;
    return Status(mistaken ? Code::kInvalidArgument : reply.code, reply.message);
  }

 private:
  const int64_t patience_ms_;
  Mutex mutex_;
  const std::unique_ptr<SchedulerConnection> serving_ HDPS_GUARDED_BY(mutex_);
};
using MessageClientPointer = std::shared_ptr<MessageClient>;

MessageClientPointer Connect(const std::string& address, const py::object& keys, bool insecure,
                             double timeout) {
  const std::string folder = keys.is_none() ? "" : PathOf(keys);
  auto serving = ValueOf(InLibrary([&]() -> Result<std::unique_ptr<SchedulerConnection>> {
    HDPS_ASSIGN_OR_RETURN(Connections connections,
                          ConnectionsWith(folder, insecure, {KeyRole::kReader, KeyRole::kAdmin}));
    return SchedulerConnection::Open(address, std::move(connections), {kServingPeer, "hdps serve"});
  }));
  const auto patience_ms = static_cast<int64_t>(std::clamp(timeout, 0.001, 1e6) * 1000);
  return {new MessageClient(std::move(serving), patience_ms), DeleteUnlessForked<MessageClient>()};
}

py::list TensorNotes(const std::vector<SentTensor>& tensors) {
  py::list notes;
  for (const SentTensor& tensor : tensors) {
    notes.append(py::make_tuple(ToText(tensor.name), ToText(tensor.datatype), tensor.width));
  }
  return notes;
}

// Returns name, version, inputs and outputs of a model, and whether it is ready.
py::tuple Note(MessageClient& self, const std::string& model) {
  PredictRequest request;
  request.model = model;
  const PredictReply reply = ValueOf(InLibrary([&] { return self.Ask(request); }));
  return py::make_tuple(ToText(reply.model), reply.step, TensorNotes(reply.takes),
                        TensorNotes(reply.gives), reply.ready);
}

// Returns the outputs of a reply as names with an array, or with lists of texts.
py::list OutputsOf(const PredictReply& reply) {
  py::list outputs;
  size_t number = 0, end = 0;
  const std::span<const float> numbers = reply.numbers.As<float>();
  const std::span<const uint32_t> ends = reply.ends.As<uint32_t>();
  const auto* const texts = reinterpret_cast<const char*>(reply.texts.data());
  for (const SentOutput& output : reply.outputs) {
    const size_t count = size_t{reply.rows} * output.width;
    if (!output.texts) {
      const auto here = numbers.subspan(number, count);
      outputs.append(py::make_tuple(ToText(output.name),
                                    Array::Of(std::vector<float>(here.begin(), here.end()),
                                              ShapeOf(reply.rows, output.width))));
      number += count;
      continue;
    }
    py::list rows;
    for (uint32_t row = 0; row < reply.rows; ++row) {
      py::list of_row;
      for (uint32_t i = 0; i < output.width; ++i, ++end) {
        of_row.append(ToText(std::string(texts + ends[end], ends[end + 1] - ends[end])));
      }
      rows.append(of_row);
    }
    ++end;
    outputs.append(py::make_tuple(ToText(output.name), rows));
  }
  return outputs;
}

// Refuses what would be more than a request may have; the rest of it is for names.
void CheckSections(const PredictRequest& request) {
  uint64_t bytes = 0;
  for (const Buffer* section :
       {&request.ends, &request.texts, &request.integers, &request.floats, &request.doubles}) {
    bytes += section->size();
  }
  if (bytes <= kRequestBytesMax * 7 / 8) return;
  RaiseMistake("the rows have " + std::to_string(bytes) + " bytes, and one request at most " +
               std::to_string(kRequestBytesMax) + ": give them in several calls");
}
void CheckName(const std::string& what, const std::string& name) {
  if (name.size() <= kTextBytesMax) return;
  RaiseMistake(what + " has " + std::to_string(name.size()) + " bytes: expected at most " +
               std::to_string(kTextBytesMax));
}

py::tuple Predict(MessageClient& self, const std::string& model, const SentRows& rows,
                  const std::vector<std::string>& outputs, int64_t version, uint32_t top_k,
                  const std::string& id) {
  PredictRequest request;
  request.model = model;
  request.step = version;
  request.top_k = top_k;
  request.id = id;
  CheckName("request_id", id);
  for (const std::string& name : outputs) {
    CheckName("the name of an output", name);
    request.outputs.push_back({name});
  }
  PutInto(&request, *rows);
  CheckSections(request);
  const PredictReply reply = ValueOf(InLibrary([&] { return self.Ask(request); }));
  return py::make_tuple(reply.step, OutputsOf(reply));
}

// Asks for rows of a table by keys, or by values of a feature if that has a name. Returns the
// version and the rows, [keys, dim].
py::tuple Lookup(MessageClient& self, const std::string& model, const std::string& table,
                 const std::vector<uint64_t>& keys, const std::string& feature,
                 const std::vector<std::string>& values) {
  PredictRequest request;
  request.model = model;
  request.table = table;
  CheckName("table", table);
  CheckName("feature", feature);
  SentCells cells;
  const bool by_value = !feature.empty();
  cells.rows = static_cast<uint32_t>(std::min<size_t>(by_value ? values.size() : keys.size(),
                                                      std::numeric_limits<uint32_t>::max()));
  cells.columns = {{feature, by_value ? CellForm::kTexts : CellForm::kIntegers, cells.rows, false}};
  for (const uint64_t key : keys) cells.integers.push_back(static_cast<int64_t>(key));
  if (by_value) cells.ends.push_back(0);
  for (const std::string& value : values) {
    cells.texts += value;
    cells.ends.push_back(static_cast<uint32_t>(cells.texts.size()));
  }
  PutInto(&request, std::move(cells));
  CheckSections(request);
  const PredictReply reply = ValueOf(InLibrary([&] { return self.Ask(request); }));
  const py::list outputs = OutputsOf(reply);
  if (outputs.empty()) Raise(Status(Code::kCorruption, "the answer has no rows of a table"));
  return py::make_tuple(reply.step, py::tuple(outputs[0])[1]);
}

}  // namespace

void AddClient(py::module_& module) {
  py::class_<SentCells, SentRows>(module, "SentRows",
                                  "Rows of hdps.Client as a request sends them.")
      .def("tensors", &TensorsOf, "Returns name, datatype, shape and bytes of each column.");
  module.def("rows_to_send", &RowsToSend, py::arg("data"), py::arg("inputs"),
             "Takes those columns of data that are inputs of a model.");
  module.def("floats_of", &FloatsOf, py::arg("bytes"), py::arg("shape"),
             "Returns an array of the floats in the bytes.");
  module.def("columns_beside", &ColumnsBeside, py::arg("columns"),
             "Returns arrays of one axis as the columns of one array.");
  py::class_<MessageClient, MessageClientPointer>(module, "MessageClient",
                                                  "The side of ZeroMQ of hdps.Client.")
      .def(py::init(&Connect), py::arg("address"), py::arg("keys"), py::arg("insecure"),
           py::arg("timeout"))
      .def("note", &Note, py::arg("model"))
      .def("predict", &Predict, py::arg("model"), py::arg("rows"), py::arg("outputs"),
           py::arg("version"), py::arg("top_k"), py::arg("id"))
      .def("lookup", &Lookup, py::arg("model"), py::arg("table"), py::arg("keys"),
           py::arg("feature"), py::arg("values"));
}

}  // namespace hdps::python
