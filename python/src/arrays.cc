// Binds hdps.Array.
#include "python/src/arrays.h"

#include <pybind11/stl.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <numeric>
#include <optional>

#include "python/src/arguments.h"
#include "python/src/bindings.h"
#include "python/src/dlpack_abi.h"

namespace hdps::python {
namespace py = pybind11;
namespace {

struct TypeFacts {
  const char* name;
  const char* format;  // Of the struct module.
  uint8_t code, bytes;
};
TypeFacts FactsOf(ArrayType type) {
  switch (type) {
    case ArrayType::kFloat32:
      return {"float32", "f", dlpack::kFloat, 4};
    case ArrayType::kFloat64:
      return {"float64", "d", dlpack::kFloat, 8};
    case ArrayType::kInt64:
      return {"int64", "q", dlpack::kInt, 8};
    case ArrayType::kUint64:
      return {"uint64", "Q", dlpack::kUint, 8};
  }
  return {};
}

// Returns the strides in units of `unit` elements or bytes.
std::vector<int64_t> StridesOf(const std::vector<int64_t>& shape, int64_t unit) {
  std::vector<int64_t> strides(shape.size());
  for (size_t axis = shape.size(); axis-- > 0; unit *= shape[axis]) strides[axis] = unit;
  return strides;
}

py::buffer_info BufferOf(const Array& array) {
  const TypeFacts facts = FactsOf(array.type());
  const std::vector<int64_t> strides = StridesOf(array.shape(), facts.bytes);
  return py::buffer_info(const_cast<void*>(array.data()), facts.bytes, facts.format,
                         static_cast<py::ssize_t>(array.shape().size()),
                         std::vector<py::ssize_t>(array.shape().begin(), array.shape().end()),
                         std::vector<py::ssize_t>(strides.begin(), strides.end()),
                         /*readonly=*/true);
}

// Holds a struct of DLPack with what it points into, and keeps the values.
template <typename ManagedTensor>
struct Export {
  ManagedTensor managed = {};
  std::shared_ptr<const void> keeps;
  std::vector<int64_t> shape, strides;
};

// Makes the capsule; it deletes a struct that nobody took out of it.
template <typename ManagedTensor>
py::capsule CapsuleOf(const Array& array, std::shared_ptr<const void> keeps, const void* data,
                      uint64_t flags, const char* name) {
  auto made = std::make_unique<Export<ManagedTensor>>();
  const TypeFacts facts = FactsOf(array.type());
  made->keeps = std::move(keeps);
  made->shape = array.shape();
  made->strides = StridesOf(array.shape(), 1);
  ManagedTensor& managed = made->managed;
  managed.tensor = {.data = const_cast<void*>(data),
                    .device = {dlpack::kCpu, 0},
                    .ndim = static_cast<int32_t>(made->shape.size()),
                    .dtype = {facts.code, static_cast<uint8_t>(8 * facts.bytes), 1},
                    .shape = made->shape.data(),
                    .strides = made->strides.data(),
                    .byte_offset = 0};
  managed.context = made.get();
  managed.deleter = [](ManagedTensor* own) {
    delete static_cast<Export<ManagedTensor>*>(own->context);
  };
  if constexpr (requires { managed.flags; }) {
    managed.version = {dlpack::kMajorVersion, dlpack::kMinorVersion};
    managed.flags = flags;
  }
  PyObject* const capsule = PyCapsule_New(&managed, name, [](PyObject* own) {
    const char* const now = PyCapsule_GetName(own);
    if (now == nullptr || std::string_view(now).starts_with("used_")) return;
    auto* const left = static_cast<ManagedTensor*>(PyCapsule_GetPointer(own, now));
    if (left != nullptr) left->deleter(left);
  });
  if (capsule == nullptr) throw py::error_already_set();
  made.release();  // The capsule has it now.
  return py::reinterpret_steal<py::capsule>(capsule);
}

[[noreturn]] void RaiseBufferError(const std::string& text) {
  PyErr_SetString(PyExc_BufferError, text.c_str());
  throw py::error_already_set();
}

// The protocol of data-apis.org/array-api: __dlpack__.
py::capsule ToDlpack(const Array& array, const py::object& stream,
                     const std::optional<std::pair<int64_t, int64_t>>& max_version,
                     const std::optional<std::pair<int64_t, int64_t>>& dl_device,
                     std::optional<bool> copy) {
  if (!stream.is_none()) RaiseBufferError("stream: the array lies in host memory; give None");
  if (dl_device && *dl_device != std::pair<int64_t, int64_t>(dlpack::kCpu, 0)) {
    RaiseBufferError("dl_device: the array lies in host memory; give (1, 0) or None");
  }
  std::shared_ptr<const void> keeps = array.keeps();
  const void* data = array.data();
  uint64_t flags = dlpack::kReadOnly;
  if (copy.value_or(false)) {
    const auto bytes = static_cast<size_t>(array.size()) * FactsOf(array.type()).bytes;
    const auto copied = std::make_shared<std::vector<uint64_t>>((bytes + 7) / 8);
    if (bytes > 0) std::memcpy(copied->data(), data, bytes);
    data = copied->data();
    keeps = copied;
    flags = dlpack::kIsCopied;
  }
  if (max_version && max_version->first >= dlpack::kMajorVersion) {
    return CapsuleOf<dlpack::ManagedVersioned>(array, std::move(keeps), data, flags,
                                               "dltensor_versioned");
  }
  return CapsuleOf<dlpack::Managed>(array, std::move(keeps), data, flags, "dltensor");
}

// The types of an array by their names.
Array View(const Array& array, const std::string& dtype) {
  std::string known;
  for (const ArrayType type :
       {ArrayType::kFloat32, ArrayType::kFloat64, ArrayType::kInt64, ArrayType::kUint64}) {
    const TypeFacts facts = FactsOf(type);
    if (facts.bytes != FactsOf(array.type()).bytes) continue;
    if (dtype == facts.name) return array.As(type);
    known += (known.empty() ? "" : ", ") + std::string(facts.name);
  }
  RaiseMistake("view: dtype \"" + dtype + "\" does not fit " + FactsOf(array.type()).name +
               "; give one of " + known);
}

py::object ToList(const py::object& self) { return py::memoryview(self).attr("tolist")(); }

std::string Describe(const Array& array) {
  std::string shape;
  for (const int64_t length : array.shape()) shape += std::to_string(length) + ", ";
  if (array.shape().size() > 1) shape.resize(shape.size() - 2);
  if (array.shape().size() == 1) shape.resize(shape.size() - 1);
  return std::string("hdps.Array(dtype=") + FactsOf(array.type()).name + ", shape=(" + shape + "))";
}

}  // namespace

int64_t Array::size() const {
  return std::accumulate(shape_.begin(), shape_.end(), int64_t{1}, std::multiplies<>());
}

void AddArray(py::module_& module) {
  py::class_<Array>(module, "Array", py::buffer_protocol(), R"(Numbers in memory of hdps, read-only.

numpy.asarray(a), memoryview(a) and torch.from_dlpack(a) read them without a copy,
and keep them while they are in use. Numbers that a library would write are asked
for by a.__dlpack__(copy=True), or copied there.

>>> import hdps, tempfile
>>> folder = tempfile.mkdtemp()
>>> made = hdps.generate(folder, rows=500, eval_rows=100)
>>> _ = hdps.train(made["job"], folder + "/run", quiet=True)
>>> a = hdps.Model.open(folder + "/run").predict(folder + "/eval.tsv")
>>> a.dtype, a.shape, len(a.tolist())
('float32', (100,), 100)
)")
      .def_buffer(&BufferOf)
      .def_property_readonly(
          "shape", [](const Array& array) { return py::tuple(py::cast(array.shape())); },
          "The length of each axis, a tuple.")
      .def_property_readonly(
          "dtype", [](const Array& array) { return FactsOf(array.type()).name; },
          "The type of the numbers: float32, float64, int64 or uint64.")
      .def("view", &View, py::arg("dtype"),
           R"(Returns the same memory as numbers of another type that have as many bytes.

A library without uint64, as torch before 2.3, takes keys as a.view("int64"). Raises JobError.)")
      .def("tolist", &ToList, "Returns the numbers as a list; of several axes, as lists of lists.")
      .def("__len__", [](const Array& array) { return array.shape().front(); })
      .def("__repr__", &Describe)
      .def("__dlpack__", &ToDlpack, py::kw_only(), py::arg("stream") = py::none(),
           py::arg("max_version") = py::none(), py::arg("dl_device") = py::none(),
           py::arg("copy") = py::none(),
           R"(Returns a capsule with the numbers, for the from_dlpack of another library.

With max_version of (1, 0) or higher the capsule says that the numbers are read-only;
older ones cannot. copy=True gives numbers of its own, that may be written.
Raises BufferError for another device than the host's, (1, 0), and for a stream.)")
      .def(
          "__dlpack_device__", [](const Array&) { return std::pair(dlpack::kCpu, 0); },
          "Returns (1, 0): the host's memory.");
}

}  // namespace hdps::python
