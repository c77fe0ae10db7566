// The rectangle of a step's matrix that a rank holds under a layout.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "common/parallel/layout.h"

namespace hdps {

// The rows of one step over all workers, worker 0's first.
class StepRows {
 public:
  StepRows() : begin_(1, 0) {}
  explicit StepRows(std::span<const uint32_t> counts);  // [workers]

  size_t total() const { return begin_.back(); }
  uint32_t workers() const { return static_cast<uint32_t>(begin_.size()) - 1; }
  // Returns part `part` of the rows if they are cut into `parts` parts of consecutive workers.
  // Requires: `parts` divides the number of workers.
  Cut Part(uint32_t part, uint32_t parts) const;
  friend bool operator==(const StepRows&, const StepRows&) = default;

 private:
  std::vector<size_t> begin_;  // [workers + 1]
};

// The columns of a matrix, which may be cut at multiples of `unit`. `unit` divides `columns`.
struct ColumnShape {
  size_t columns = 0;
  size_t unit = 1;
  Cut Part(uint32_t part, uint32_t parts) const {
    const Cut units = CutOf(columns / unit, part, parts);
    return {units.begin * unit, units.size * unit};
  }
  friend bool operator==(const ColumnShape&, const ColumnShape&) = default;
};

struct MatrixPart {
  Cut rows, columns;
  size_t size() const { return rows.size * columns.size; }
  friend bool operator==(const MatrixPart&, const MatrixPart&) = default;
};

MatrixPart PartOf(const Layout& layout, uint32_t rank, const StepRows& rows,
                  const ColumnShape& columns);
// Returns the intersection of both.
MatrixPart Common(const MatrixPart& a, const MatrixPart& b);

}  // namespace hdps
