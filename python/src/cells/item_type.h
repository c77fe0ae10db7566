// Tells what the items of a buffer are.
#pragma once

#include <pybind11/pybind11.h>

#include "worker/data/columnar/columns.h"

namespace hdps::python {

// Describes an item as a format of Python's struct module does.
struct ItemType {
  CellKind kind = CellKind::kOther;  // kText: a text of fixed length.
  const char* name = "";
  bool swapped = false;  // The bytes of a number have the other order.
  bool wide = false;     // kText: of UCS-4 letters; else of bytes.
};

// Returns kOther for items that are no number, boolean or text, such as Python objects.
ItemType ItemTypeOf(const Py_buffer& view);

}  // namespace hdps::python
