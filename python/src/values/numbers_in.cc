// Looks for the memory of numbers in the order of how little it costs to read.
#include "python/src/values/numbers_in.h"

#include <cstring>
#include <functional>
#include <numeric>
#include <utility>

#include "python/src/arguments.h"
#include "python/src/values/item_type.h"

namespace hdps::python {
namespace py = pybind11;
namespace {

constexpr size_t kAxesMax = 32;  // Of a list in a list; NumPy has the same.

std::string NameOf(const dlpack::DataType& type) {
  const char* const kinds[] = {"int", "uint", "float", "opaque", "bfloat", "complex", "bool"};
  const std::string kind = type.code < std::size(kinds) ? kinds[type.code] : "type";
  return kind + std::to_string(type.bits) + (type.lanes == 1 ? "" : " in lanes");
}

}  // namespace

NumbersIn::NumbersIn(const py::handle& given, Wanted wanted, std::string where)
    : wanted_(wanted), where_(std::move(where)) {
  Take(given, /*of_array=*/false);
}

size_t NumbersIn::size() const {
  return static_cast<size_t>(
      std::accumulate(shape_.begin(), shape_.end(), int64_t{1}, std::multiplies<>()));
}

void NumbersIn::Take(const py::handle& given, bool of_array) {
  if (PyObject_CheckBuffer(given.ptr()) != 0) return TakeBuffer(given);
  if (py::isinstance<py::list>(given) || py::isinstance<py::tuple>(given)) return TakeList(given);
  const bool instance = PyType_Check(given.ptr()) == 0;
  if (instance && py::hasattr(given, "__dlpack__")) return TakeDlpack(given);
  if (instance && !of_array && py::hasattr(given, "__array__")) {
    const py::object array = given.attr("__array__")();
    return Take(array, /*of_array=*/true);
  }
  RaiseTypeError(where_ + " is a " + Py_TYPE(given.ptr())->tp_name +
                 ": expected an array (NumPy, PyTorch, JAX) or a list");
}

void NumbersIn::RequireType(bool right, const std::string& type) const {
  if (right) return;
  const bool keys = wanted_ == Wanted::kKeys;
  RaiseTypeError(where_ + ": the numbers are " + type + "; give " +
                 (keys ? "int64 or uint64, as .long() of PyTorch or .astype(\"int64\") of NumPy do"
                       : "float32, as .float() of PyTorch or .astype(\"float32\") of NumPy do"));
}

void NumbersIn::TakeBuffer(const py::handle& given) {
  Py_buffer view;
  if (PyObject_GetBuffer(given.ptr(), &view, PyBUF_RECORDS_RO) != 0) {
    PyErr_Clear();  // NumPy has no buffer of dates, for example.
    RequireType(false, std::string("those of a ") + Py_TYPE(given.ptr())->tp_name +
                           " without a buffer of numbers");
  }
  kept_.Add(view);
  const ItemType type = ItemTypeOf(view);
  const bool right = wanted_ == Wanted::kKeys
                         ? type.kind == CellKind::kInt64 || type.kind == CellKind::kUint64
                         : type.kind == CellKind::kFloat32;
  const std::string format = view.format == nullptr ? "B" : view.format;
  RequireType(right && !type.swapped,
              type.kind == CellKind::kOther
                  ? "of the format '" + format + "'"
                  : type.name + std::string(type.swapped ? " with the bytes of another host" : ""));
  if (view.ndim > 0 && (view.shape == nullptr || view.strides == nullptr)) {
    RaiseTypeError(where_ + ": the buffer does not tell its shape");
  }
  shape_.assign(view.shape, view.shape + view.ndim);
  TakeStrided(view.buf, std::vector<int64_t>(view.strides, view.strides + view.ndim));
}

void NumbersIn::TakeDlpack(const py::handle& given) {
  const std::string name = Py_TYPE(given.ptr())->tp_name;
  try {
    const py::tuple device = given.attr("__dlpack_device__")();
    const auto type = py::cast<int>(device[0]);
    if (type != dlpack::kCpu && type != dlpack::kCudaHost && type != dlpack::kRocmHost) {
      RaiseTypeError(where_ + ": the numbers lie on a device; give .cpu() of them");
    }
    const py::object capsule = given.attr("__dlpack__")();
    void* const tensor = PyCapsule_GetPointer(capsule.ptr(), "dltensor");
    if (tensor == nullptr || PyCapsule_SetName(capsule.ptr(), "used_dltensor") != 0) {
      throw py::error_already_set();
    }
    tensor_.reset(static_cast<dlpack::Managed*>(tensor));
  } catch (py::error_already_set& error) {
    if (!error.matches(PyExc_Exception)) throw;  // Such as KeyboardInterrupt.
    RaiseTypeError(where_ + ": a " + name +
                   " does not give its numbers: " + TextOf(py::str(error.value())) +
                   "; a tensor that needs gradients is given as .detach()");
  } catch (py::cast_error&) {
    RaiseTypeError(where_ + ": __dlpack_device__ of a " + name + " gives no pair of numbers");
  }
  const dlpack::Tensor& tensor = tensor_->tensor;
  const bool keys = wanted_ == Wanted::kKeys;
  const bool code_right =
      keys ? tensor.dtype.code == dlpack::kInt || tensor.dtype.code == dlpack::kUint
           : tensor.dtype.code == dlpack::kFloat;
  RequireType(code_right && tensor.dtype.bits == 8 * item_bytes() && tensor.dtype.lanes == 1,
              NameOf(tensor.dtype));
  shape_.assign(tensor.shape, tensor.shape + tensor.ndim);
  std::vector<int64_t> strides(shape_.size());
  auto unit = static_cast<int64_t>(item_bytes());
  for (size_t axis = shape_.size(); axis-- > 0; unit *= shape_[axis]) {
    strides[axis] = tensor.strides == nullptr
                        ? unit
                        : tensor.strides[axis] * static_cast<int64_t>(item_bytes());
  }
  TakeStrided(static_cast<const char*>(tensor.data) + tensor.byte_offset, strides);
}

void NumbersIn::TakeStrided(const void* data, const std::vector<int64_t>& strides) {
  const size_t bytes = item_bytes(), count = size();
  auto unit = static_cast<int64_t>(bytes);
  bool in_place = reinterpret_cast<uintptr_t>(data) % bytes == 0;
  for (size_t axis = shape_.size(); axis-- > 0; unit *= shape_[axis]) {
    in_place = in_place && (shape_[axis] <= 1 || strides[axis] == unit);
  }
  data_ = data;
  if (in_place || count == 0) return;
  copied_ = true;
  auto* const to = static_cast<char*>(kept_.New(count * bytes));
  data_ = to;
  std::vector<int64_t> index(shape_.size(), 0);
  const char* from = static_cast<const char*>(data);
  for (size_t i = 0; i < count; ++i) {
    std::memcpy(to + i * bytes, from, bytes);
    for (size_t axis = shape_.size(); axis-- > 0;) {
      from += strides[axis];
      if (++index[axis] < shape_[axis]) break;
      from -= strides[axis] * shape_[axis];
      index[axis] = 0;
    }
  }
}

void NumbersIn::TakeList(const py::handle& given) {
  std::vector<char> items;
  AddItems(given, 0, &items);
  copied_ = true;
  void* const to = kept_.New(items.size());
  if (!items.empty()) std::memcpy(to, items.data(), items.size());
  data_ = to;
}

void NumbersIn::AddItems(const py::handle& given, size_t axis, std::vector<char>* items) {
  if (axis == kAxesMax) RaiseTypeError(where_ + ": lists are nested too deep");
  const py::tuple all(
      py::reinterpret_borrow<py::object>(given));  // What does not change meanwhile.
  const auto length = static_cast<int64_t>(all.size());
  const bool first = items->empty() && shape_.size() == axis;
  if (first) shape_.push_back(length);
  if (shape_.size() <= axis || shape_[axis] != length) {
    RaiseTypeError(where_ + ": the lists have unequal lengths or depths");
  }
  for (const py::handle item : all) {
    const bool is_list = py::isinstance<py::list>(item) || py::isinstance<py::tuple>(item);
    if (is_list) {
      AddItems(item, axis + 1, items);
    } else if (shape_.size() != axis + 1) {
      RaiseTypeError(where_ + ": the lists have unequal lengths or depths");
    } else {
      AddItem(item, items);
    }
  }
}

void NumbersIn::AddItem(const py::handle& item, std::vector<char>* items) const {
  const char* const type = Py_TYPE(item.ptr())->tp_name;
  char bytes[sizeof(Key)];
  if (wanted_ == Wanted::kKeys) {
    const auto whole = py::reinterpret_steal<py::object>(PyNumber_Index(item.ptr()));
    if (!whole) {
      PyErr_Clear();
      RaiseTypeError(where_ + ": expected whole numbers, not a " + type);
    }
    int beyond = 0;
    auto key = static_cast<Key>(PyLong_AsLongLongAndOverflow(whole.ptr(), &beyond));
    if (beyond > 0) key = PyLong_AsUnsignedLongLong(whole.ptr());
    if (beyond < 0 || PyErr_Occurred() != nullptr) {
      PyErr_Clear();
      RaiseTypeError(where_ + ": a key does not fit in 64 bits");
    }
    std::memcpy(bytes, &key, sizeof(key));
  } else {
    const double number = PyFloat_AsDouble(item.ptr());
    if (PyErr_Occurred() != nullptr) {
      PyErr_Clear();
      RaiseTypeError(where_ + ": expected numbers, not a " + type);
    }
    const auto rounded = static_cast<float>(number);
    std::memcpy(bytes, &rounded, sizeof(rounded));
  }
  items->insert(items->end(), bytes, bytes + item_bytes());
}

}  // namespace hdps::python
