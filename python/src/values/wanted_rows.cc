// Finds the table, and takes or makes the keys.

#include <algorithm>
#include <utility>

#include "common/base/nearest_name.h"
#include "common/job/job_facts.h"
#include "common/job/job_spec.h"
#include "common/job/spec/table_spec.h"
#include "common/job/table_slices.h"
#include "python/src/arguments.h"
#include "python/src/entry.h"
#include "python/src/job.h"
#include "python/src/model.h"
#include "python/src/status.h"
#include "python/src/values/columns_in.h"

namespace hdps::python {
namespace py = pybind11;
namespace {

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

// Raises JobError unless rows of the feature are in the table.
void CheckHasFeature(const Job& job, TableId table, const std::string& feature) {
  const std::vector<std::string> all = FeaturesOf(job.data).sparse;
  const TableSpec& spec = job.tables[table.value];
  std::vector<std::string> of_table;
  for (const uint32_t f : FeaturesOfTable(job, spec.name)) of_table.push_back(all[f]);
  if (std::ranges::find(of_table, feature) != of_table.end()) return;
  RaiseMistake("table \"" + spec.name + "\" has no rows of feature \"" + feature + "\"" +
               DidYouMean(feature, of_table));
}

}  // namespace

WantedRows RowsWanted(const Job& job, const std::string& table, const py::object& keys,
                      const py::object& feature, const py::object& values,
                      const KeysOfValues& keys_of) {
  WantedRows wanted{TableNamed(job, table), {}, {}};
  const bool by_key = !keys.is_none(), by_value = !feature.is_none() && !values.is_none();
  if (by_key == by_value || (by_key && !(feature.is_none() && values.is_none()))) {
    RaiseTypeError("give keys=..., or both feature=... and values=...");
  }
  if (by_key) {
    wanted.keys = GivenKeys(keys);
    return wanted;
  }
  if (!py::isinstance<py::str>(feature)) RaiseTypeError("feature: expected its name, a str");
  wanted.feature = TextOf(feature);
  wanted.keys = ValueOf(InLibrary([&, column = TableOfValues(*wanted.feature, values)] {
    return keys_of(*wanted.feature, column);
  }));
  CheckHasFeature(job, wanted.table, *wanted.feature);
  return wanted;
}

}  // namespace hdps::python
