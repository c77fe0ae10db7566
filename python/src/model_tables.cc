// Binds the tables of hdps.Model: rows by key and by value.
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "common/base/nearest_name.h"
#include "common/job/job_facts.h"
#include "common/job/spec/table_spec.h"
#include "common/job/table_slices.h"
#include "python/src/arguments.h"
#include "python/src/arrays.h"
#include "python/src/cells/columns_in.h"
#include "python/src/entry.h"
#include "python/src/job.h"
#include "python/src/model.h"
#include "python/src/status.h"

namespace hdps::python {
namespace py = pybind11;
namespace {

std::vector<Key> KeysOf(const HeldModel& model, const std::string& feature,
                        const py::object& values) {
  return ValueOf(InLibrary([&, table = TableOfValues(feature, values)] {
    return model.scorer->KeysOf(feature, table);
  }));
}

// Returns keys that are given as whole numbers, with or without a sign: their 64 bits count.
std::vector<Key> GivenKeys(const py::object& keys) {
  std::vector<Key> taken;
  for (const py::handle key :
       py::tuple(py::hasattr(keys, "tolist") ? keys.attr("tolist")() : keys)) {
    PyObject* const whole = PyNumber_Index(key.ptr());
    if (whole == nullptr) throw py::error_already_set();
    const auto owned = py::reinterpret_steal<py::int_>(whole);
    const bool negative = owned < py::int_(0);
    taken.push_back(negative ? static_cast<Key>(py::cast<int64_t>(owned))
                             : py::cast<uint64_t>(owned));
  }
  return taken;
}

// Takes the keys of lookup() and contains(), which are given in one of two ways.
std::vector<Key> WantedKeys(const HeldModel& model, TableId table, const py::object& keys,
                            const py::object& feature, const py::object& values) {
  const bool by_key = !keys.is_none(), by_value = !feature.is_none() && !values.is_none();
  if (by_key == by_value || (by_key && !(feature.is_none() && values.is_none()))) {
    RaiseTypeError("give keys=..., or both feature=... and values=...");
  }
  if (by_key) return GivenKeys(keys);
  if (!py::isinstance<py::str>(feature)) RaiseTypeError("feature: expected its name, a str");
  const auto name = TextOf(feature);
  std::vector<Key> found = KeysOf(model, name, values);
  const std::vector<std::string> all = FeaturesOf(model.job().data).sparse;
  const TableSpec& spec = model.job().tables[table.value];
  std::vector<std::string> of_table;
  for (const uint32_t f : FeaturesOfTable(model.job(), spec.name)) of_table.push_back(all[f]);
  if (std::ranges::find(of_table, name) != of_table.end()) return found;
  RaiseMistake("table \"" + spec.name + "\" has no rows of feature \"" + name + "\"" +
               DidYouMean(name, of_table));
}

Array Lookup(HeldModel& model, const std::string& name, const py::object& keys,
             const py::object& feature, const py::object& values) {
  const TableId table = TableNamed(model.job(), name);
  const std::vector<Key> wanted = WantedKeys(model, table, keys, feature, values);
  const auto dim = static_cast<int64_t>(model.job().tables[table.value].dim);
  std::vector<float> rows(wanted.size() * static_cast<size_t>(dim));
  {
    const Entry entry;
    model.scorer->Lookup(table, wanted, rows);
  }
  return Array::Of(std::move(rows), {static_cast<int64_t>(wanted.size()), dim});
}

std::vector<bool> Contains(HeldModel& model, const std::string& name, const py::object& keys,
                           const py::object& feature, const py::object& values) {
  const TableId table = TableNamed(model.job(), name);
  const std::vector<Key> wanted = WantedKeys(model, table, keys, feature, values);
  const Entry entry;
  return model.scorer->Contains(table, wanted);
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
