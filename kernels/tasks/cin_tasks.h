// The steps of a compressed interaction network (Lian et al. 2018, section 3.2) around its
// products. A matrix of maps has one row a map and one column for each component of each example,
// (example, component), so that all steps run along rows.
#pragma once

#include "kernels/tasks/row_task.h"

namespace hdps {

// Returns the place of the pair (low, high) among the pairs low <= high of `count` vectors: (0, 0),
// (0, 1), ..., (1, 1), ...
HDPS_ROW_TASK inline size_t PairPlace(size_t low, size_t high, size_t count) {
  return low * (2 * count - low + 1) / 2 + high - low;
}

// y [F, n * dim] = the vectors of x [n, F * dim], a row a vector. Columns of y behind the last
// example become zero.
struct SplitVectors {
  size_t dim = 0;
  ConstMatrix x;
  Matrix y;
  Matrix Over() const { return y; }
  HDPS_ROW_TASK void operator()(size_t f, size_t col) const {
    const size_t row = col / dim;
    ElementOf(y, f, col) = row < x.rows ? ElementOf(x, row, f * dim + col % dim) : 0.0f;
  }
};

// Its transpose: dx [n, F * dim] (+)= dy.
struct SplitVectorsBackward {
  size_t dim = 0;
  ConstMatrix dy;
  Write write_dx = Write::kOver;
  Matrix dx;
  Matrix Over() const { return dx; }
  HDPS_ROW_TASK void operator()(size_t row, size_t col) const {
    WriteTo(ElementOf(dx, row, col), write_dx, ElementOf(dy, col / dim, row * dim + col % dim));
  }
};

// z = the products of each row of maps [H, cols] with each of first [F, cols]: row h * F + f of z.
// With `twice`, maps is first, and z has each pair h <= f once, at its PairPlace().
struct PairProducts {
  bool twice = false;
  ConstMatrix maps, first;
  Matrix z;
  Matrix Over() const { return {nullptr, maps.rows, z.cols, z.cols}; }
  size_t FloatsARow() const { return first.rows * z.cols; }
  HDPS_ROW_TASK size_t Begin(size_t h) const { return twice ? h : 0; }
  HDPS_ROW_TASK size_t PlaceOf(size_t h, size_t f) const {
    return twice ? PairPlace(h, f, first.rows) : h * first.rows + f;
  }

  HDPS_ROW_TASK void operator()(size_t h, size_t col) const {
    const float map = ElementOf(maps, h, col);
    for (size_t f = Begin(h); f < first.rows; ++f) {
      ElementOf(z, PlaceOf(h, f), col) = map * ElementOf(first, f, col);
    }
  }
};

// Its backward: dmaps = sum over f of dz * first.
struct MapsBackward {
  ConstMatrix first, dz;
  Matrix dmaps;
  Matrix Over() const { return dmaps; }
  size_t FloatsARow() const { return first.rows * dz.cols; }
  HDPS_ROW_TASK void operator()(size_t h, size_t col) const {
    float sum = 0.0f;
    for (size_t f = 0; f < first.rows; ++f) {
      sum += ElementOf(dz, h * first.rows + f, col) * ElementOf(first, f, col);
    }
    ElementOf(dmaps, h, col) = sum;
  }
};

// dfirst (+)= sum over h of dz * maps.
struct FirstBackward {
  ConstMatrix maps, dz;
  Write write = Write::kOver;
  Matrix dfirst;
  Matrix Over() const { return dfirst; }
  size_t FloatsARow() const { return maps.rows * dz.cols; }
  HDPS_ROW_TASK void operator()(size_t f, size_t col) const {
    float sum = 0.0f;
    for (size_t h = 0; h < maps.rows; ++h) {
      sum += ElementOf(dz, h * dfirst.rows + f, col) * ElementOf(maps, h, col);
    }
    WriteTo(ElementOf(dfirst, f, col), write, sum);
  }
};

// The backward of products of a matrix with itself: dfirst (+)= for each vector, the sum over its
// pairs of dz * the other vector; the pair with itself counts twice.
struct TwiceBackward {
  ConstMatrix first, dz;
  Write write = Write::kOver;
  Matrix dfirst;
  Matrix Over() const { return dfirst; }
  size_t FloatsARow() const { return first.rows * dz.cols; }
  HDPS_ROW_TASK void operator()(size_t f, size_t col) const {
    float sum = 0.0f;
    for (size_t h = 0; h <= f; ++h) {
      sum += ElementOf(dz, PairPlace(h, f, first.rows), col) * ElementOf(first, h, col);
    }
    for (size_t g = f; g < first.rows; ++g) {
      sum += ElementOf(dz, PairPlace(f, g, first.rows), col) * ElementOf(first, g, col);
    }
    WriteTo(ElementOf(dfirst, f, col), write, sum);
  }
};

// Adds the two rows of x [F * F, cols] that multiply the same product: y [pairs, cols].
struct FoldPairs {
  size_t vectors = 0;
  ConstMatrix x;
  Matrix y;
  Matrix Over() const { return {nullptr, vectors, y.cols, y.cols}; }
  size_t FloatsARow() const { return vectors * y.cols; }
  HDPS_ROW_TASK void operator()(size_t low, size_t col) const {
    for (size_t high = low; high < vectors; ++high) {
      const float one = ElementOf(x, low * vectors + high, col);
      ElementOf(y, PairPlace(low, high, vectors), col) =
          low == high ? one : one + ElementOf(x, high * vectors + low, col);
    }
  }
};

// Its backward: both rows get the gradient of their pair. dx [F * F, cols].
struct FoldPairsBackward {
  size_t vectors = 0;
  ConstMatrix dy;
  Matrix dx;
  Matrix Over() const { return dx; }
  HDPS_ROW_TASK void operator()(size_t row, size_t col) const {
    const size_t h = row / vectors, f = row % vectors;
    ElementOf(dx, row, col) =
        ElementOf(dy, h < f ? PairPlace(h, f, vectors) : PairPlace(f, h, vectors), col);
  }
};

// y [n, H] = the maps [H, n * dim] added over the components of each example.
struct SumComponents {
  size_t dim = 0;
  ConstMatrix maps;
  Matrix y;
  Matrix Over() const { return y; }
  size_t FloatsARow() const { return dim * y.cols; }
  HDPS_ROW_TASK void operator()(size_t row, size_t h) const {
    ElementOf(y, row, h) = SumOf(&ElementOf(maps, h, row * dim), dim);
  }
};

// dmaps [H, n * dim] (+)= dy for each component, and zero behind the last example.
struct SumComponentsBackward {
  size_t dim = 0;
  ConstMatrix dy;
  Write write = Write::kOver;
  Matrix dmaps;
  Matrix Over() const { return dmaps; }
  HDPS_ROW_TASK void operator()(size_t h, size_t col) const {
    const size_t row = col / dim;
    WriteTo(ElementOf(dmaps, h, col), write, row < dy.rows ? ElementOf(dy, row, h) : 0.0f);
  }
};

}  // namespace hdps
