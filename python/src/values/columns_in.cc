// Chooses how each column is taken, and makes a table of them.
#include "python/src/values/columns_in.h"

#include <algorithm>
#include <optional>
#include <string_view>
#include <utility>

#include "common/base/status.h"
#include "common/job/spec/data_spec.h"
#include "python/src/arguments.h"
#include "python/src/entry.h"
#include "python/src/status.h"
#include "python/src/values/buffer_cells.h"
#include "python/src/values/list_cells.h"
#include "worker/data/columnar/arrow_abi.h"
#include "worker/data/header_check.h"

namespace hdps::python {
namespace py = pybind11;
namespace {

// Calls the first of `methods` that the object has, or returns nothing.
std::optional<py::object> CallFirst(py::handle object, std::initializer_list<const char*> methods) {
  for (const char* const method : methods) {
    if (py::hasattr(object, method)) return object.attr(method)();
  }
  return std::nullopt;
}

bool IsOfPandas(py::handle object) {
  const py::object module = py::getattr(py::type::handle_of(object), "__module__", py::str(""));
  return py::isinstance<py::str>(module) && py::cast<std::string>(module).starts_with("pandas.");
}

py::tuple ObjectsOf(const std::string& name, py::handle values) {
  PyObject* const o = values.ptr();
  const bool single = PyUnicode_Check(o) || PyBytes_Check(o) || PyByteArray_Check(o) ||
                      PyDict_Check(o) || PyAnySet_Check(o);
  py::object items = py::reinterpret_borrow<py::object>(values);
  if (!single && !PyList_Check(o) && !PyTuple_Check(o)) {
    // Python's own numbers are quicker to look at than those of arrays.
    if (auto list = CallFirst(values, {"tolist", "to_list", "to_pylist"})) items = *std::move(list);
  }
  PyObject* const tuple = single ? nullptr : PySequence_Tuple(items.ptr());
  if (tuple != nullptr) return py::reinterpret_steal<py::tuple>(tuple);
  if (!single && PyErr_ExceptionMatches(PyExc_TypeError) == 0) throw py::error_already_set();
  PyErr_Clear();
  throw py::type_error("column '" + name + "' is a " + Py_TYPE(o)->tp_name +
                       ": expected a list, an array, or another sequence with a cell for each row");
}

OneColumn ColumnOf(const std::string& name, py::handle values, KeptCells* kept) {
  PyObject* const o = values.ptr();
  if (PyBytes_Check(o) == 0 && PyByteArray_Check(o) == 0) {
    const bool series = IsOfPandas(values) && py::hasattr(values, "to_numpy");
    const py::object array =
        series ? py::object(values.attr("to_numpy")()) : py::reinterpret_borrow<py::object>(values);
    if (auto made = ColumnOfBuffer(name, array, kept)) return *std::move(made);
    if (series) return ColumnOfObjects(name, ObjectsOf(name, array), kept);
  }
  return ColumnOfObjects(name, ObjectsOf(name, values), kept);
}

std::shared_ptr<const ColumnTable> TableOf(std::vector<OneColumn> made,
                                           std::shared_ptr<const KeptCells> kept) {
  std::vector<ColumnTable::Column> columns;
  std::vector<ColumnChunk> chunks;
  for (OneColumn& one : made) {
    if (!chunks.empty() && one.cells.length != chunks.front().length) {
      Raise(Status(Code::kInvalidArgument,
                   "column '" + one.column.name + "' has " + std::to_string(one.cells.length) +
                       " rows, and column '" + columns.front().name + "' has " +
                       std::to_string(chunks.front().length) + ": expected as many"));
    }
    columns.push_back(std::move(one.column));
    chunks.push_back(std::move(one.cells));
  }
  return ValueOf(ColumnTable::FromChunks(std::move(columns), std::move(chunks), std::move(kept)));
}

// Raises JobError if a column is missing, and names all that are.
template <typename Has>
void RefuseMissing(const std::vector<std::string>& wanted, const Has& has) {
  std::string missing;
  size_t count = 0;
  for (const std::string& name : wanted) {
    if (has(name)) continue;
    missing += (count++ == 0 ? "\"" : ", \"") + name + "\"";
  }
  if (count == 0) return;
  Raise(Status(Code::kInvalidArgument, "the data lack the column" +
                                           std::string(count == 1 ? " " : "s ") + missing +
                                           ", which the job reads"));
}

}  // namespace

std::vector<std::string> ColumnsNeeded(const DataSpec& data, bool labels) {
  if (!HasNamedColumns(data.format)) {
    RaiseMistake("the job's data.format is " + std::string(WordOf(data.format)) +
                 ", whose rows have no columns by name: give files of that format");
  }
  std::vector<std::string> names;
  for (const ColumnSpec& column : data.columns) {
    const bool needed = column.type != ColumnType::kSkip && (labels || !MayBeAbsent(column.type));
    const bool told = std::ranges::count(names, column.cell()) > 0;
    if (needed && !told) names.push_back(column.cell());
  }
  return names;
}

std::shared_ptr<const ColumnTable> TableOfRows(const py::object& rows,
                                               const std::vector<std::string>& wanted) {
  if (py::hasattr(rows, "__arrow_c_stream__")) {
    if (auto table = TableOfStream(rows, wanted)) return table;
  }
  if (!py::hasattr(rows, "keys") || !py::hasattr(rows, "__getitem__") ||
      !py::hasattr(rows, "__contains__")) {
    RaiseTypeError(std::string("data: a ") + Py_TYPE(rows.ptr())->tp_name +
                   " has no rows: expected a dict of columns, a data frame or an Arrow table, a "
                   "path, or a list of paths");
  }
  return TableOfColumns(rows, wanted);
}

std::shared_ptr<const ColumnTable> TableOfColumns(const py::object& data,
                                                  const std::vector<std::string>& wanted) {
  RefuseMissing(wanted, [&data](const std::string& name) { return data.contains(name); });
  const auto kept = std::make_shared<KeptCells>();
  std::vector<OneColumn> columns;
  for (const std::string& name : wanted) {
    columns.push_back(ColumnOf(name, data[name.c_str()], kept.get()));
  }
  return TableOf(std::move(columns), kept);
}

std::shared_ptr<const ColumnTable> TableOfValues(const std::string& name,
                                                 const py::handle& values) {
  const auto kept = std::make_shared<KeptCells>();
  std::vector<OneColumn> columns;
  columns.push_back(ColumnOf(name, values, kept.get()));
  return TableOf(std::move(columns), kept);
}

std::shared_ptr<const ColumnTable> TableOfStream(const py::object& data,
                                                 const std::vector<std::string>& wanted) {
  py::object capsule;
  try {
    capsule = data.attr("__arrow_c_stream__")();
  } catch (py::error_already_set& error) {
    if (!error.matches(PyExc_ImportError)) throw;
    return nullptr;
  }
  if (PyCapsule_IsValid(capsule.ptr(), "arrow_array_stream") == 0) {
    throw py::type_error("__arrow_c_stream__() did not return a capsule \"arrow_array_stream\"");
  }
  auto* const stream =
      static_cast<ArrowArrayStream*>(PyCapsule_GetPointer(capsule.ptr(), "arrow_array_stream"));
  std::shared_ptr<const ColumnTable> table =
      ValueOf(InLibrary([stream] { return ColumnTable::FromStream(stream); }));
  RefuseMissing(wanted, [&table](const std::string& name) {
    return std::ranges::find(table->columns(), name, &ColumnTable::Column::name) !=
           table->columns().end();
  });
  return table;
}

}  // namespace hdps::python
