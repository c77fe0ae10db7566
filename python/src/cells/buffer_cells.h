// Takes the cells of an array with Python's buffer protocol.
#pragma once

#include <pybind11/pybind11.h>

#include <optional>
#include <string>

#include "python/src/cells/kept_cells.h"
#include "python/src/cells/list_cells.h"

namespace hdps::python {

// Returns the column of an array: of numbers or booleans, or of texts of fixed length as NumPy has
// them ('U' and 'S'). Two axes are a list of cells a row. Numbers are not copied if they lie one
// behind the other in the host's byte order. Returns nothing if `values` has no buffer or one of
// other cells, such as Python objects. Raises TypeError for an array of no axis or of three.
std::optional<OneColumn> ColumnOfBuffer(const std::string& name, pybind11::handle values,
                                        KeptCells* kept);

}  // namespace hdps::python
