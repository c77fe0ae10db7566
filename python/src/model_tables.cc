// Binds the tables of hdps.Model: rows by key and by value.
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common/job/spec/table_spec.h"
#include "python/src/arrays.h"
#include "python/src/entry.h"
#include "python/src/job.h"
#include "python/src/model.h"
#include "python/src/status.h"
#include "python/src/values/columns_in.h"

namespace hdps::python {
namespace py = pybind11;
namespace {

std::vector<Key> KeysOf(const HeldModel& model, const std::string& feature,
                        const py::object& values) {
  return ValueOf(InLibrary([&, table = TableOfValues(feature, values)] {
    return model.scorer->KeysOf(feature, table);
  }));
}

WantedRows RowsOf(const HeldModel& model, const std::string& table, const py::object& keys,
                  const py::object& feature, const py::object& values) {
  const auto keys_of = [&model](const std::string& name,
                                std::shared_ptr<const ColumnTable> column) {
    return model.scorer->KeysOf(name, std::move(column));
  };
  return RowsWanted(model.job(), table, keys, feature, values, keys_of);
}

Array Lookup(HeldModel& model, const std::string& name, const py::object& keys,
             const py::object& feature, const py::object& values) {
  const WantedRows wanted = RowsOf(model, name, keys, feature, values);
  const auto dim = static_cast<int64_t>(model.job().tables[wanted.table.value].dim);
  std::vector<float> rows(wanted.keys.size() * static_cast<size_t>(dim));
  {
    const Entry entry;
    model.scorer->Lookup(wanted.table, wanted.keys, rows);
  }
  return Array::Of(std::move(rows), {static_cast<int64_t>(wanted.keys.size()), dim});
}

std::vector<bool> Contains(HeldModel& model, const std::string& name, const py::object& keys,
                           const py::object& feature, const py::object& values) {
  const WantedRows wanted = RowsOf(model, name, keys, feature, values);
  const Entry entry;
  return model.scorer->Contains(wanted.table, wanted.keys);
}

py::dict TablesOf(const HeldModel& model) {
  const std::vector<uint64_t> rows = model.scorer->loaded().RowsOfTables();
  py::dict tables;
  for (size_t t = 0; t < rows.size(); ++t) {
    const TableSpec& table = model.job().tables[t];
    if (table.dense) continue;
    tables[py::str(table.name)] = py::dict(py::arg("dim") = table.dim, py::arg("rows") = rows[t]);
  }
  return tables;
}

constexpr const char* kLookupDoc = R"(Returns the weights of rows of a table: float32 [n, dim].

table: one of `tables`.
keys: whole numbers, as keys() gives them; or feature and values, of which it makes keys.

A key without a row reads as the model was opened with: contains() tells which these are. Raises
JobError for a table or feature that is not there, and TypeError for keys that are no numbers.
)";

constexpr const char* kKeysDoc = R"(Returns the keys of values of a feature: uint64 [n].

A value has the key that it has in a file, however it is stored: a whole number is its decimal text.
Values of a feature whose data.vocabulary lacks them share one key. Raises JobError for a feature
that is not there or is made of others, and for an id without a row.
)";

}  // namespace

void AddTables(py::class_<HeldModel, ModelPointer>& model) {
  model
      .def_property_readonly("tables", &TablesOf,
                             "The tables by name: a dict each, with `dim`, the length of a row, "
                             "and `rows`, their number.")
      .def(
          "lookup", &Lookup, py::arg("table"), py::kw_only(), py::arg("keys") = py::none(),
          py::arg("feature") = py::none(), py::arg("values") = py::none(),
          WithExample(kLookupDoc,
                      ">>> model.lookup(\"wide\", feature=\"C1\", values=[\"3\", 4]).shape[0]\n2\n")
              .c_str())
      .def("contains", &Contains, py::arg("table"), py::kw_only(), py::arg("keys") = py::none(),
           py::arg("feature") = py::none(), py::arg("values") = py::none(),
           WithExample(
               "Returns for each key whether the table has a row of it: a list of bool.\n\n"
               "Arguments and errors are those of lookup().\n",
               ">>> model.contains(\"wide\", feature=\"C1\", values=[\"nothing\"])\n[False]\n")
               .c_str())
      .def(
          "keys",
          [](const HeldModel& held, const std::string& feature, const py::object& values) {
            std::vector<Key> keys = KeysOf(held, feature, values);
            const auto rows = static_cast<int64_t>(keys.size());
            return Array::Of(std::move(keys), {rows});
          },
          py::arg("feature"), py::arg("values"),
          WithExample(kKeysDoc,
                      ">>> model.keys(\"C1\", [3]).tolist() == model.keys(\"C1\", "
                      "[\"3\"]).tolist()\nTrue\n")
              .c_str());
}

}  // namespace hdps::python
