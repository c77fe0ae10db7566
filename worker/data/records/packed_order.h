// Tells where the cells of a row lie in a packed line.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace hdps {

struct ColumnSpec;
struct DataSpec;

// A packed line has the byte CellTag::kPacked, keys and numbers of 8 bytes each, and then the other
// cells. It has no texts of keys, so it is for who needs rows alone.
//
// Invariant: the same job has the same order, whatever file a line is from.
class PackedOrder {
 public:
  enum class Form : uint8_t {
    kCell,    // As in any line.
    kKey,     // The key of the one column that reads the cell, which is categorical without ids.
    kNumber,  // The double of the one column that reads it, which is numeric; NaN: missing.
  };
  struct Place {
    Form form = Form::kCell;
    size_t offset = 0;  // Of a key or number, from the line's begin on.
    uint64_t salt = 0;  // Of a key.
  };

  // `cells` are those of lines: RecordColumns(data).
  PackedOrder(const DataSpec& data, const std::vector<ColumnSpec>& cells);

  const std::vector<Place>& places() const { return places_; }  // [cells]
  size_t bytes() const { return bytes_; }                       // Of the tag, keys and numbers.
  // The text that stands for a missing value.
  const std::string& missing() const { return missing_; }

 private:
  std::vector<Place> places_;
  size_t bytes_ = 1;
  const std::string missing_;
};

}  // namespace hdps
