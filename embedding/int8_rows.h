// Holds rows for scoring in 8 bits a weight, with one scale for each row.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "common/base/ids.h"
#include "embedding/flat_rows.h"
#include "embedding/memory/row_index.h"

namespace hdps {

// The weights of FlatRows, rounded.
//
// Invariant: weight i of a row reads as scale * q[i], where q[i] is a whole number from -127 to 127
// and `scale` is the largest magnitude of the row over 127, rounded up to 16 bits (bf16). So a
// weight is off by at most half a scale, beside the rounding of floats.
class Int8Rows {
 public:
  // Returns the bytes of a row: the scale, then a byte a weight.
  static constexpr size_t RowBytes(uint32_t dim) { return sizeof(uint16_t) + dim; }
  static std::unique_ptr<Int8Rows> Of(const FlatRows& rows);

  size_t num_rows() const { return index_.size(); }
  // Fills `row` [dim] and returns true, or returns false if the key has no row.
  bool Read(Key key, std::span<float> row) const;
  // Returns the number of a key's row, below num_rows(), or nothing if the key has no row.
  std::optional<uint32_t> RowNumber(Key key) const;

 private:
  explicit Int8Rows(const FlatRows& rows);
  void Add(Key key, std::span<const float> weights);

  const uint32_t dim_;
  RowIndex index_;  // Numbers rows in the order in which they lie in `bytes_`.
  std::vector<std::byte> bytes_;
};

}  // namespace hdps
