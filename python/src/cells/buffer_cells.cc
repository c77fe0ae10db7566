// Copies cells that do not lie as a column's do.
#include "python/src/cells/buffer_cells.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <string_view>
#include <utility>

#include "python/src/cells/item_type.h"

namespace hdps::python {
namespace py = pybind11;
namespace {

// The items of a view of one or two axes, in order.
class Items {
 public:
  explicit Items(const Py_buffer& view) : view_(view) {}

  int64_t rows() const { return view_.shape[0]; }
  int64_t a_row() const { return view_.ndim == 2 ? view_.shape[1] : 1; }
  int64_t size() const { return rows() * a_row(); }
  // Is true if the items are a column's cells as they are.
  bool in_place(const ItemType& type) const {
    const auto at = reinterpret_cast<uintptr_t>(view_.buf);
    return !type.swapped && PyBuffer_IsContiguous(&view_, 'C') == 1 &&
           at % static_cast<size_t>(view_.itemsize) == 0;
  }
  template <typename Visit>  // visit(index, item)
  void ForEach(const Visit& visit) const {
    int64_t index = 0;
    for (int64_t row = 0; row < rows(); ++row) {
      const char* item = static_cast<const char*>(view_.buf) + row * view_.strides[0];
      for (int64_t i = 0; i < a_row(); ++i) {
        visit(index++, item);
        if (view_.ndim == 2) item += view_.strides[1];
      }
    }
  }

 private:
  const Py_buffer& view_;
};

const void* NumberCells(const Py_buffer& view, const Items& items, const ItemType& type,
                        KeptCells* kept) {
  if (items.in_place(type)) return view.buf;
  const auto bytes = static_cast<size_t>(view.itemsize);
  auto* const cells = static_cast<char*>(kept->New(static_cast<size_t>(items.size()) * bytes));
  items.ForEach([&](int64_t index, const char* item) {
    char* const cell = cells + static_cast<size_t>(index) * bytes;
    std::memcpy(cell, item, bytes);
    if (type.swapped) std::reverse(cell, cell + bytes);
  });
  return cells;
}

const void* BitCells(const Items& items, KeptCells* kept) {
  auto* const bits = static_cast<uint8_t*>(kept->New(static_cast<size_t>(items.size()) / 8 + 1));
  items.ForEach([&](int64_t index, const char* item) {
    uint8_t& byte = bits[index / 8];
    if (*item != 0) byte = static_cast<uint8_t>(byte | 1u << index % 8);
  });
  return bits;
}

// Appends a text of letters of four bytes. Raises UnicodeError for what is no letter.
void AppendWide(const char* item, size_t letters, bool swapped, std::string* bytes) {
  std::vector<Py_UCS4> text(letters);
  std::memcpy(text.data(), item, letters * sizeof(Py_UCS4));
  if (swapped) {
    for (Py_UCS4& letter : text) letter = __builtin_bswap32(letter);
  }
  while (!text.empty() && text.back() == 0) text.pop_back();
  PyObject* const made = PyUnicode_FromKindAndData(PyUnicode_4BYTE_KIND, text.data(),
                                                   static_cast<Py_ssize_t>(text.size()));
  if (made == nullptr) throw py::error_already_set();
  const auto owned = py::reinterpret_steal<py::str>(made);
  Py_ssize_t size = 0;
  const char* const utf8 = PyUnicode_AsUTF8AndSize(made, &size);
  if (utf8 == nullptr) throw py::error_already_set();
  bytes->append(utf8, static_cast<size_t>(size));
}

void FillTexts(const Py_buffer& view, const Items& items, const ItemType& type, KeptCells* kept,
               ColumnChunk* cells) {
  auto* const offsets =
      static_cast<int64_t*>(kept->New((static_cast<size_t>(items.size()) + 1) * sizeof(int64_t)));
  std::string* const bytes = kept->NewText();
  const auto item_bytes = static_cast<size_t>(view.itemsize);
  items.ForEach([&](int64_t index, const char* item) {
    if (type.wide) {
      AppendWide(item, item_bytes / sizeof(Py_UCS4), type.swapped, bytes);
    } else {
      // NumPy fills the rest of an item with zeros.
      const std::string_view text(item, item_bytes);
      bytes->append(text.substr(0, text.find_last_not_of('\0') + 1));
    }
    offsets[index + 1] = static_cast<int64_t>(bytes->size());
  });
  cells->cells = offsets;
  cells->bytes = bytes->data();
}

// Turns the cells of a view of two axes into lists, one a row.
OneColumn ListsOf(OneColumn values, const Items& items, KeptCells* kept) {
  auto* const offsets =
      static_cast<int64_t*>(kept->New((static_cast<size_t>(items.rows()) + 1) * sizeof(int64_t)));
  for (int64_t row = 0; row <= items.rows(); ++row) offsets[row] = row * items.a_row();
  OneColumn lists;
  lists.column.name = values.column.name;
  lists.column.type.kind = CellKind::kLargeList;
  lists.column.type.name = "list of " + values.column.type.name;
  lists.column.type.values = std::make_shared<const CellType>(std::move(values.column.type));
  lists.cells.length = items.rows();
  lists.cells.cells = offsets;
  lists.cells.values = std::make_shared<const ColumnChunk>(std::move(values.cells));
  return lists;
}

}  // namespace

std::optional<OneColumn> ColumnOfBuffer(const std::string& name, py::handle values,
                                        KeptCells* kept) {
  Py_buffer view;
  if (PyObject_CheckBuffer(values.ptr()) == 0) return std::nullopt;
  if (PyObject_GetBuffer(values.ptr(), &view, PyBUF_RECORDS_RO) != 0) {
    PyErr_Clear();  // NumPy has no buffer of dates, for example; their objects are looked at.
    return std::nullopt;
  }
  kept->Add(view);
  if (view.ndim < 1 || view.ndim > 2) {
    throw py::type_error("column '" + name + "' is an array of " + std::to_string(view.ndim) +
                         " axes: expected one, or two for several values a row");
  }
  const ItemType type = ItemTypeOf(view);
  if (type.kind == CellKind::kOther || view.shape == nullptr || view.strides == nullptr) {
    return std::nullopt;
  }
  const Items items(view);
  OneColumn made;
  made.column.name = name;
  made.column.type.kind = type.kind == CellKind::kText ? CellKind::kLargeText : type.kind;
  made.column.type.name = type.name;
  made.cells.length = items.size();
  if (type.kind == CellKind::kText) {
    FillTexts(view, items, type, kept, &made.cells);
  } else if (type.kind == CellKind::kBool) {
    made.cells.cells = BitCells(items, kept);
  } else {
    made.cells.cells = NumberCells(view, items, type, kept);
  }
  if (view.ndim == 1) return made;
  return ListsOf(std::move(made), items, kept);
}

}  // namespace hdps::python
