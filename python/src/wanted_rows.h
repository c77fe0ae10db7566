// Takes the arguments of lookup() and contains(): which rows of which table.
#pragma once

#include <pybind11/pybind11.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/base/ids.h"
#include "common/base/status.h"
#include "worker/data/columnar/columns.h"

namespace hdps {

struct Job;

}  // namespace hdps

namespace hdps::python {

struct WantedRows {
  TableId table;
  std::vector<Key> keys;
  std::optional<std::string> feature;  // The keys are those of values of this feature.
};

// Returns the keys of a column of values of a feature.
using KeysOfValues = std::function<Result<std::vector<Key>>(const std::string& feature,
                                                            std::shared_ptr<const ColumnTable>)>;

// Takes a table by name, and keys, given as whole numbers or as values of a feature, of which
// `keys_of` makes them without the interpreter's lock. Raises JobError for a table or feature that
// the job lacks, and TypeError for keys that are given in no or in both ways, or are no numbers.
WantedRows RowsWanted(const Job& job, const std::string& table, const pybind11::object& keys,
                      const pybind11::object& feature, const pybind11::object& values,
                      const KeysOfValues& keys_of);

}  // namespace hdps::python
