// The steps of a compressed interaction network (Lian et al. 2018, section 3.2) around its
// products. Its maps have one row for each component of the vectors, (example, component), and one
// column a map.
#pragma once

#include "kernels/tasks/row_task.h"

namespace hdps {

// y [n * dim, F] = x [n, F * dim], each example transposed.
struct SplitVectors {
  size_t dim = 0;
  ConstMatrix x;
  Matrix y;
  Matrix Over() const { return y; }
  HDPS_ROW_TASK void operator()(size_t row, size_t f) const {
    ElementOf(y, row, f) = ElementOf(x, row / dim, f * dim + row % dim);
  }
};

// Its transpose: dx (+)= dy [n * dim, F].
struct SplitVectorsBackward {
  size_t dim = 0;
  ConstMatrix dy;
  Write write_dx = Write::kOver;
  Matrix dx;
  Matrix Over() const { return dx; }
  HDPS_ROW_TASK void operator()(size_t row, size_t col) const {
    WriteTo(ElementOf(dx, row, col), write_dx, ElementOf(dy, row * dim + col % dim, col / dim));
  }
};

// y [rows, H * F] = the products of each column of maps [rows, H] with each of first [rows, F].
struct CinProducts {
  ConstMatrix maps, first;
  Matrix y;
  Matrix Over() const { return y.Columns(0, maps.cols); }
  size_t FloatsARow() const { return y.cols; }

  HDPS_ROW_TASK void operator()(size_t row, size_t h) const {
    const float map = ElementOf(maps, row, h);
    const float* const from = &ElementOf(first, row, 0);
    float* const to = &ElementOf(y, row, h * first.cols);
    for (size_t f = 0; f < first.cols; ++f) to[f] = map * from[f];
  }
};

// dmaps = sum over f of dy * first, dfirst (+)= sum over h of dy * maps.
struct CinProductsBackward {
  ConstMatrix maps, first, dy;
  Matrix dmaps;
  Write write_dfirst = Write::kOver;
  Matrix dfirst;
  Matrix Over() const { return dmaps; }
  size_t FloatsARow() const { return 2 * dy.cols; }

  HDPS_ROW_TASK void operator()(size_t row) const {
    const float* const from = &ElementOf(first, row, 0);
    float* const to = &ElementOf(dfirst, row, 0);
    for (size_t h = 0; h < maps.cols; ++h) {
      const float map = ElementOf(maps, row, h);
      const float* const d = &ElementOf(dy, row, h * first.cols);
      ElementOf(dmaps, row, h) = DotOf(d, from, first.cols);
      if (h == 0 && write_dfirst == Write::kOver) {
        for (size_t f = 0; f < first.cols; ++f) to[f] = d[f] * map;
      } else {
        for (size_t f = 0; f < first.cols; ++f) to[f] += d[f] * map;
      }
    }
  }
};

// y [n, H] = the maps [n * dim, H] added over the components of each example.
struct SumComponents {
  size_t dim = 0;
  ConstMatrix maps;
  Matrix y;
  Matrix Over() const { return y; }
  size_t FloatsARow() const { return dim * y.cols; }

  HDPS_ROW_TASK void operator()(size_t row, size_t h) const {
    float sum = 0.0f;
    for (size_t d = 0; d < dim; ++d) sum += ElementOf(maps, row * dim + d, h);
    ElementOf(y, row, h) = sum;
  }
};

// dmaps (+)= dy for each component.
struct SumComponentsBackward {
  size_t dim = 0;
  ConstMatrix dy;
  Write write = Write::kOver;
  Matrix dmaps;
  Matrix Over() const { return dmaps; }
  HDPS_ROW_TASK void operator()(size_t row, size_t h) const {
    WriteTo(ElementOf(dmaps, row, h), write, ElementOf(dy, row / dim, h));
  }
};

}  // namespace hdps
