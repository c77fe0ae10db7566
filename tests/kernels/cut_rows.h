// Rows that lie in pieces, for tests that compare them with the same rows in one.
#pragma once

#include <span>
#include <vector>

#include "kernels/row_spans.h"

namespace hdps {

// A copy of `whole` [rows, dim] cut in front of each of `borders` (rows, ascending), every piece in
// memory of its own. A border that stands twice makes a piece without rows, which is left out.
class CutRows {
 public:
  CutRows(std::span<const float> whole, uint32_t dim, const std::vector<size_t>& borders) {
    size_t begin = 0;
    for (const size_t border : borders) {
      memory_.emplace_back(whole.begin() + static_cast<ptrdiff_t>(begin),
                           whole.begin() + static_cast<ptrdiff_t>(border * dim));
      begin = border * dim;
    }
    memory_.emplace_back(whole.begin() + static_cast<ptrdiff_t>(begin), whole.end());
  }
  RowSpans<float> pieces() {
    RowSpans<float> all;
    for (std::vector<float>& piece : memory_) all.Append(piece);
    return all;
  }
  std::vector<float> Joined() const {
    std::vector<float> all;
    for (const std::vector<float>& piece : memory_) {
      all.insert(all.end(), piece.begin(), piece.end());
    }
    return all;
  }

 private:
  std::vector<std::vector<float>> memory_;
};

}  // namespace hdps
