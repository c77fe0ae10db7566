// Cuts rows into separate pieces, for tests that compare them with the same rows in one piece.
#pragma once

#include <span>
#include <vector>

#include "kernels/row_spans.h"

namespace hdps {

// Copies `whole` [rows, dim] into pieces of separate memory, cut before each of `borders` (rows,
// ascending). Two equal borders make an empty piece, which is left out.
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
