// Lists the datatypes of the Open Inference Protocol that inputs may have.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "worker/data/columnar/columns.h"

namespace hdps {

struct Datatype {
  std::string_view name;
  CellKind cells;   // Of values that were read from JSON.
  CellKind binary;  // Of values where they lie.
  size_t bytes;     // Of a binary value; 0: 4 bytes of its length, and as many bytes.
  // Of whole numbers; BOOL has none, so its lowest is above its highest.
  int64_t lowest = 0;
  uint64_t highest = 0;

  bool is_bool() const { return lowest > 0; }

  // Says what a value in JSON may be: "a whole number from 0 to 255".
  std::string Wanted() const;
};

// Returns null if there is none of the name.
const Datatype* FindDatatype(std::string_view name);
// "BOOL, INT8, ..."
std::string DatatypeNames();

}  // namespace hdps
