// Finds the one type of a list's objects, and converts them.
#include "python/src/cells/list_cells.h"

#include <cmath>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

namespace hdps::python {
namespace py = pybind11;
namespace {

enum class Tag : uint8_t { kMissing, kBool, kWhole, kNumber, kText, kList };

// Tells which kinds of cells a column has.
struct Seen {
  bool missing = false, boolean = false, whole = false, number = false, text = false, list = false;
};

class ListCells {
 public:
  ListCells(const std::string& name, KeptCells* kept) : name_(name), kept_(*kept) {}

  // `in_list`: the objects are those of lists, one behind the other; then no message names a row.
  OneColumn Convert(const py::tuple& objects, bool in_list) {
    in_list_ = in_list;
    tags_.clear();
    seen_ = {};
    for (size_t i = 0; i < objects.size(); ++i) Look(i, objects[i]);
    if (seen_.list) return Lists(objects);
    if (seen_.text) return Texts(objects);
    if (seen_.number) return Numbers(objects);
    if (seen_.whole) {
      if (std::optional<OneColumn> whole = WholeNumbers(objects)) return *std::move(whole);
      return Texts(objects);  // Of numbers beyond 64 bits.
    }
    if (seen_.boolean) return Booleans(objects);
    return Made(CellKind::kNull, "null", nullptr);
  }

 private:
  [[noreturn]] void Refuse(size_t row, const std::string& what) const {
    throw py::type_error("column '" + name_ + "'" +
                         (in_list_ ? "" : ", row " + std::to_string(row)) + ": " + what);
  }

  void Look(size_t row, py::handle object) {
    const Tag tag = TagOf(row, object);
    tags_.push_back(tag);
    seen_.missing |= tag == Tag::kMissing;
    seen_.boolean |= tag == Tag::kBool;
    seen_.whole |= tag == Tag::kWhole;
    seen_.number |= tag == Tag::kNumber;
    seen_.text |= tag == Tag::kText;
    seen_.list |= tag == Tag::kList;
    if (seen_.list && (seen_.boolean || seen_.whole || seen_.number || seen_.text)) {
      Refuse(row, "lists and single values are mixed: give a list in every row, or in none");
    }
    if (seen_.text && (seen_.boolean || seen_.number)) {
      Refuse(row, "texts are mixed with booleans or numbers that are not whole: give one kind");
    }
  }

  Tag TagOf(size_t row, py::handle object) const {
    PyObject* const o = object.ptr();
    const std::string_view type = Py_TYPE(o)->tp_name;
    if (o == Py_None || type.ends_with("NAType") || type.ends_with("NaTType")) return Tag::kMissing;
    if (PyBool_Check(o) || type == "numpy.bool_" || type == "numpy.bool") return Tag::kBool;
    if (PyList_Check(o) || PyTuple_Check(o) || type == "numpy.ndarray") return Tag::kList;
    if (PyIndex_Check(o)) return Tag::kWhole;
    if (PyFloat_Check(o)) return std::isnan(PyFloat_AS_DOUBLE(o)) ? Tag::kMissing : Tag::kNumber;
    if (PyUnicode_Check(o) || PyBytes_Check(o)) return Tag::kText;
    const PyNumberMethods* const methods = Py_TYPE(o)->tp_as_number;
    if (methods != nullptr && methods->nb_float != nullptr) return Tag::kNumber;
    Refuse(row, "an object of type " + std::string(type) +
                    " is no cell: expected a number, a text, a bool, None, or a list of these");
  }

  OneColumn Made(CellKind kind, const char* type, const void* cells) {
    OneColumn made;
    made.column.name = name_;
    made.column.type.kind = kind;
    made.column.type.name = type;
    made.cells.length = static_cast<int64_t>(tags_.size());
    made.cells.cells = cells;
    if (!seen_.missing || kind == CellKind::kNull) return made;
    auto* const bits = static_cast<uint8_t*>(kept_.New(tags_.size() / 8 + 1));
    for (size_t i = 0; i < tags_.size(); ++i) {
      if (tags_[i] != Tag::kMissing) bits[i / 8] = static_cast<uint8_t>(bits[i / 8] | 1u << i % 8);
    }
    made.cells.validity = bits;
    return made;
  }

  OneColumn Booleans(const py::tuple& objects) {
    auto* const bits = static_cast<uint8_t*>(kept_.New(tags_.size() / 8 + 1));
    for (size_t i = 0; i < tags_.size(); ++i) {
      if (tags_[i] == Tag::kMissing) continue;
      const int truth = PyObject_IsTrue(objects[i].ptr());
      if (truth < 0) throw py::error_already_set();
      if (truth == 1) bits[i / 8] = static_cast<uint8_t>(bits[i / 8] | 1u << i % 8);
    }
    return Made(CellKind::kBool, "bool", bits);
  }

  // Returns nothing if a number needs more than 64 bits with a sign.
  std::optional<OneColumn> WholeNumbers(const py::tuple& objects) {
    auto* const cells = static_cast<int64_t*>(kept_.New(tags_.size() * sizeof(int64_t)));
    for (size_t i = 0; i < tags_.size(); ++i) {
      if (tags_[i] == Tag::kMissing) continue;
      const auto whole = Own(PyNumber_Index(objects[i].ptr()));
      int overflow = 0;
      cells[i] = PyLong_AsLongLongAndOverflow(whole.ptr(), &overflow);
      if (overflow != 0) return std::nullopt;
      if (cells[i] == -1 && PyErr_Occurred() != nullptr) throw py::error_already_set();
    }
    return Made(CellKind::kInt64, "int64", cells);
  }
  // Takes over what a function of Python returned; null is its exception.
  static py::object Own(PyObject* made) {
    if (made == nullptr) throw py::error_already_set();
    return py::reinterpret_steal<py::object>(made);
  }

  OneColumn Numbers(const py::tuple& objects) {
    auto* const cells = static_cast<double*>(kept_.New(tags_.size() * sizeof(double)));
    for (size_t i = 0; i < tags_.size(); ++i) {
      if (tags_[i] == Tag::kMissing) continue;
      cells[i] = PyFloat_AsDouble(objects[i].ptr());
      if (cells[i] == -1 && PyErr_Occurred() != nullptr) throw py::error_already_set();
    }
    return Made(CellKind::kFloat64, "float64", cells);
  }

  OneColumn Texts(const py::tuple& objects) {
    auto* const offsets = static_cast<int64_t*>(kept_.New((tags_.size() + 1) * sizeof(int64_t)));
    std::string* const bytes = kept_.NewText();
    for (size_t i = 0; i < tags_.size(); ++i) {
      if (tags_[i] != Tag::kMissing) AppendText(objects[i], tags_[i], bytes);
      offsets[i + 1] = static_cast<int64_t>(bytes->size());
    }
    OneColumn made = Made(CellKind::kLargeText, "text", offsets);
    made.cells.bytes = bytes->data();
    return made;
  }

  static void AppendText(py::handle object, Tag tag, std::string* bytes) {
    if (tag == Tag::kWhole) {
      *bytes += py::cast<std::string>(Own(PyNumber_ToBase(object.ptr(), 10)));
    } else if (PyBytes_Check(object.ptr())) {
      bytes->append(PyBytes_AS_STRING(object.ptr()),
                    static_cast<size_t>(PyBytes_GET_SIZE(object.ptr())));
    } else {
      Py_ssize_t size = 0;
      const char* const text = PyUnicode_AsUTF8AndSize(object.ptr(), &size);
      if (text == nullptr) throw py::error_already_set();
      bytes->append(text, static_cast<size_t>(size));
    }
  }

  OneColumn Lists(const py::tuple& objects) {
    if (in_list_) Refuse(0, "a list in a list is no cell");
    auto* const offsets = static_cast<int64_t*>(kept_.New((tags_.size() + 1) * sizeof(int64_t)));
    py::list inner;
    for (size_t i = 0; i < tags_.size(); ++i) {
      if (tags_[i] != Tag::kMissing) {
        const py::object of_row = PyList_Check(objects[i].ptr()) || PyTuple_Check(objects[i].ptr())
                                      ? py::reinterpret_borrow<py::object>(objects[i])
                                      : py::object(objects[i].attr("tolist")());
        const py::tuple items(of_row);  // Raises TypeError for an array without axes.
        for (const py::handle item : items) inner.append(item);
      }
      offsets[i + 1] = static_cast<int64_t>(inner.size());
    }
    OneColumn made = Made(CellKind::kLargeList, "list", offsets);
    OneColumn values = ListCells(name_, &kept_).Convert(py::tuple(inner), /*in_list=*/true);
    made.column.type.name = "list of " + values.column.type.name;
    made.column.type.values = std::make_shared<const CellType>(std::move(values.column.type));
    made.cells.values = std::make_shared<const ColumnChunk>(std::move(values.cells));
    return made;
  }

  const std::string& name_;
  KeptCells& kept_;
  bool in_list_ = false;
  std::vector<Tag> tags_;
  Seen seen_;
};

}  // namespace

OneColumn ColumnOfObjects(const std::string& name, const py::tuple& objects, KeptCells* kept) {
  return ListCells(name, kept).Convert(objects, /*in_list=*/false);
}

}  // namespace hdps::python
