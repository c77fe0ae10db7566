// Means of the vectors of an example, and scaling of each vector: the ends of a squeeze and
// excitation network (Huang et al. 2019, section 3.2).
#pragma once

#include "kernels/tasks/row_task.h"

namespace hdps {

// y [n, F] = the mean of each of the F vectors of x [n, F * dim].
struct MeanOfVectors {
  ConstMatrix x;
  Matrix y;
  Matrix Over() const { return y; }
  size_t FloatsARow() const { return x.cols; }

  HDPS_ROW_TASK void operator()(size_t row, size_t f) const {
    const size_t dim = x.cols / y.cols;
    float sum = 0.0f;
    for (size_t d = 0; d < dim; ++d) sum += ElementOf(x, row, f * dim + d);
    ElementOf(y, row, f) = sum / static_cast<float>(dim);
  }
};

struct MeanOfVectorsBackward {
  ConstMatrix dy;
  Write write_dx = Write::kOver;
  Matrix dx;
  Matrix Over() const { return dx.Columns(0, dy.cols); }
  size_t FloatsARow() const { return dx.cols; }

  HDPS_ROW_TASK void operator()(size_t row, size_t f) const {
    const size_t dim = dx.cols / dy.cols;
    const float share = ElementOf(dy, row, f) / static_cast<float>(dim);
    for (size_t d = 0; d < dim; ++d) WriteTo(ElementOf(dx, row, f * dim + d), write_dx, share);
  }
};

// y = each vector of x times its factor; factors [n, F].
struct ScaleVectors {
  ConstMatrix x, factors;
  Matrix y;
  Matrix Over() const { return y.Columns(0, factors.cols); }
  size_t FloatsARow() const { return y.cols; }

  HDPS_ROW_TASK void operator()(size_t row, size_t f) const {
    const size_t dim = y.cols / factors.cols;
    const float factor = ElementOf(factors, row, f);
    for (size_t d = f * dim; d < (f + 1) * dim; ++d) {
      ElementOf(y, row, d) = factor * ElementOf(x, row, d);
    }
  }
};

// dx and dfactors without data are not computed.
struct ScaleVectorsBackward {
  ConstMatrix x, factors, dy;
  Write write_dx = Write::kOver, write_dfactors = Write::kOver;
  Matrix dx, dfactors;
  Matrix Over() const { return {nullptr, factors.rows, factors.cols, factors.cols}; }
  size_t FloatsARow() const { return x.cols; }

  HDPS_ROW_TASK void operator()(size_t row, size_t f) const {
    const size_t dim = x.cols / factors.cols;
    if (dfactors.data != nullptr) {
      WriteTo(ElementOf(dfactors, row, f), write_dfactors,
              DotOf(&ElementOf(x, row, f * dim), &ElementOf(dy, row, f * dim), dim));
    }
    if (dx.data == nullptr) return;
    const float factor = ElementOf(factors, row, f);
    for (size_t d = f * dim; d < (f + 1) * dim; ++d) {
      WriteTo(ElementOf(dx, row, d), write_dx, factor * ElementOf(dy, row, d));
    }
  }
};

}  // namespace hdps
