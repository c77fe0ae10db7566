// Vectors of sequences whose lengths differ: positions, alignment, the last vector.
#pragma once

#include "kernels/tasks/row_task.h"

namespace hdps {

// In all of them counts [n] are integers, the vectors that each example has of those of dim columns
// side by side; they are the first ones.

// y[i, p] = vector p of example i plus positions[P - counts[i] + p], P the vectors of y: a position
// is counted from the end, so that the last vector of each example has the same. 0 behind them. If
// there is a follower [n, dim], it is the last vector of each example.
struct AddPositions {
  size_t dim = 0;
  const float* counts = nullptr;
  ConstMatrix sequence;              // [n, P * dim], or one vector less with a follower.
  ConstMatrix follower;              // Without data: none.
  const float* positions = nullptr;  // [P, dim]
  Matrix y;
  Matrix Over() const { return y; }
  size_t FloatsARow() const { return 2 * y.cols; }

  HDPS_ROW_TASK void operator()(size_t row, size_t col) const {
    const size_t p = col / dim, d = col % dim, count = static_cast<size_t>(counts[row]);
    float value = 0.0f;
    if (p < count) {
      const bool follows = follower.data != nullptr && p + 1 == count;
      value = follows ? ElementOf(follower, row, d) : ElementOf(sequence, row, col);
      value += positions[(y.cols / dim - count + p) * dim + d];
    }
    ElementOf(y, row, col) = value;
  }
};

// y = the vectors of x moved to the end of the row, 0 before them.
struct AlignVectors {
  size_t dim = 0;
  const float* counts = nullptr;
  ConstMatrix x;
  Matrix y;
  Matrix Over() const { return y; }

  HDPS_ROW_TASK void operator()(size_t row, size_t col) const {
    const size_t gap = y.cols - dim * static_cast<size_t>(counts[row]);
    ElementOf(y, row, col) = col < gap ? 0.0f : ElementOf(x, row, col - gap);
  }
};

// y (+)= the last vector of each example; 0 where there is none. dim is y.cols.
struct LastVector {
  const float* counts = nullptr;
  ConstMatrix x;
  Write write = Write::kOver;
  Matrix y;
  Matrix Over() const { return y; }

  HDPS_ROW_TASK void operator()(size_t row, size_t d) const {
    const size_t count = static_cast<size_t>(counts[row]);
    WriteTo(ElementOf(y, row, d), write,
            count == 0 ? 0.0f : ElementOf(x, row, (count - 1) * y.cols + d));
  }
};

// dx (+)= dy in the last vector of each example, 0 in the others.
struct LastVectorBackward {
  const float* counts = nullptr;
  ConstMatrix dy;
  Write write = Write::kOver;
  Matrix dx;
  Matrix Over() const { return dx; }

  HDPS_ROW_TASK void operator()(size_t row, size_t col) const {
    const bool last = col / dy.cols + 1 == static_cast<size_t>(counts[row]);
    WriteTo(ElementOf(dx, row, col), write, last ? ElementOf(dy, row, col % dy.cols) : 0.0f);
  }
};

}  // namespace hdps
