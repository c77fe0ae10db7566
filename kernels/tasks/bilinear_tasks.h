// Products of one vector with the vectors behind it, element by element: y_j = u_j * x_j, where u_j
// is the vector times a matrix (Huang et al. 2019, eq. 6-8).
#pragma once

#include "kernels/tasks/row_task.h"

namespace hdps {

// x, y [n, J * dim] hold J vectors an example. u has the same shape or, with one matrix for all
// pairs of the vector, [n, dim].
struct BilinearRows {
  size_t dim = 0;
  ConstMatrix u, x;
  Matrix y;
  Matrix Over() const { return y.Columns(0, y.cols / dim); }
  size_t FloatsARow() const { return y.cols; }

  HDPS_ROW_TASK void operator()(size_t row, size_t j) const {
    const size_t from = u.cols == dim ? 0 : j * dim;
    for (size_t d = 0; d < dim; ++d) {
      ElementOf(y, row, j * dim + d) = ElementOf(u, row, from + d) * ElementOf(x, row, j * dim + d);
    }
  }
};

// du = dy * x, with the shape of u, summed over j if u is one vector; dx (+)= dy * u. dx without
// data is not computed.
struct BilinearRowsBackward {
  size_t dim = 0;
  ConstMatrix u, x, dy;
  Matrix du;
  Write write_dx = Write::kOver;
  Matrix dx;
  Matrix Over() const { return {nullptr, dy.rows, 1, 1}; }
  size_t FloatsARow() const { return dy.cols; }

  HDPS_ROW_TASK void operator()(size_t row) const {
    const bool shared = u.cols == dim;
    for (size_t j = 0; j * dim < dy.cols; ++j) {
      const size_t from = shared ? 0 : j * dim;
      const Write write_du = shared && j > 0 ? Write::kAdd : Write::kOver;
      for (size_t d = 0; d < dim; ++d) {
        const float g = ElementOf(dy, row, j * dim + d);
        WriteTo(ElementOf(du, row, from + d), write_du, g * ElementOf(x, row, j * dim + d));
      }
      if (dx.data == nullptr) continue;
      for (size_t d = 0; d < dim; ++d) {
        const float g = ElementOf(dy, row, j * dim + d);
        WriteTo(ElementOf(dx, row, j * dim + d), write_dx, g * ElementOf(u, row, from + d));
      }
    }
  }
};

}  // namespace hdps
