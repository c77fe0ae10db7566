// Takes columns of Python into a table: lists, arrays and what else has cells one by one.
#pragma once

#include <pybind11/pybind11.h>

#include <memory>
#include <string>
#include <vector>

#include "worker/data/columnar/columns.h"

namespace hdps {

struct DataSpec;

}  // namespace hdps

namespace hdps::python {

// Returns the names of the columns of data.columns that rows must have: those of features and, if
// `labels` is true, of labels, weights and groups. Raises JobError if the job's rows have no
// columns by name.
std::vector<std::string> ColumnsNeeded(const DataSpec& data, bool labels);

// Returns a table of rows: of an object with __arrow_c_stream__, or of a mapping from names to
// columns. Raises TypeError for others, and what the two below raise.
std::shared_ptr<const ColumnTable> TableOfRows(const pybind11::object& rows,
                                               const std::vector<std::string>& wanted);

// Returns a table of the columns `wanted` of `data`, a mapping from names to columns: a dict, or a
// data frame of pandas. Other columns are not looked at.
//
// A column is a list or anything else that can be iterated over, or has the buffer protocol.
// Numbers and booleans of the host's byte order that lie one behind the other are not copied,
// except for booleans. None, NaN in a list, and pandas' NA are missing cells. An array of two axes,
// or a list of lists, is a column of several values a row.
//
// Raises TypeError for what is no column or no cell, with the name and the row, and JobError for
// columns that are missing, and for unequal lengths. Requires: the interpreter's lock is held; any
// thread may destroy the table.
std::shared_ptr<const ColumnTable> TableOfColumns(const pybind11::object& data,
                                                  const std::vector<std::string>& wanted);

// The same for one column.
std::shared_ptr<const ColumnTable> TableOfValues(const std::string& name,
                                                 const pybind11::handle& values);

// Returns the table of an object with __arrow_c_stream__, all of whose batches are taken; null if
// that needs a module that is not there (pandas without pyarrow). JobError as above.
std::shared_ptr<const ColumnTable> TableOfStream(const pybind11::object& data,
                                                 const std::vector<std::string>& wanted);

}  // namespace hdps::python
