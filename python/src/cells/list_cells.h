// Takes the cells of a list of Python objects.
#pragma once

#include <pybind11/pybind11.h>

#include <string>

#include "python/src/cells/kept_cells.h"
#include "worker/data/columnar/columns.h"

namespace hdps::python {

// A column whose cells `KeptCells` keeps.
struct OneColumn {
  ColumnTable::Column column;
  ColumnChunk cells;
};

// Returns the column of a tuple's objects: whole numbers, numbers, booleans, texts and bytes, None,
// or lists of those. Whole numbers beside texts become their decimal text. Raises TypeError for any
// other object or mixture, and names it with its row.
OneColumn ColumnOfObjects(const std::string& name, const pybind11::tuple& objects, KeptCells* kept);

}  // namespace hdps::python
