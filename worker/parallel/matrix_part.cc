// Computes rectangles of a matrix from the digits of a rank.
#include "worker/parallel/matrix_part.h"

#include <glog/logging.h>

#include <algorithm>

namespace hdps {
namespace {

Cut Common(const Cut& a, const Cut& b) {
  const size_t begin = std::max(a.begin, b.begin), end = std::min(a.end(), b.end());
  return {begin, end > begin ? end - begin : 0};
}

}  // namespace

StepRows::StepRows(std::span<const uint32_t> counts) {
  begin_.reserve(counts.size() + 1);
  begin_.push_back(0);
  for (const uint32_t count : counts) begin_.push_back(begin_.back() + count);
}

Cut StepRows::Part(uint32_t part, uint32_t parts) const {
  CHECK_EQ(workers() % parts, 0u);
  const size_t each = workers() / parts;
  const size_t begin = begin_[part * each];
  return {begin, begin_[(part + 1) * each] - begin};
}

MatrixPart PartOf(const Layout& layout, uint32_t rank, const StepRows& rows,
                  const ColumnShape& columns) {
  return {rows.Part(layout.PartOf(rank, AxisRole::kRows), layout.parts(AxisRole::kRows)),
          columns.Part(layout.PartOf(rank, AxisRole::kColumns), layout.parts(AxisRole::kColumns))};
}

MatrixPart Common(const MatrixPart& a, const MatrixPart& b) {
  return {Common(a.rows, b.rows), Common(a.columns, b.columns)};
}

}  // namespace hdps
