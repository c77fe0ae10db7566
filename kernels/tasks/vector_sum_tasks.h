// Tasks on the sum of an example's vectors: products of all pairs, and outer products.
#pragma once

#include "kernels/tasks/row_task.h"

namespace hdps {

// x [n, F * dim] holds F vectors an example.

// y [n, dim] = their sum.
struct SumVectors {
  ConstMatrix x;
  Matrix y;
  Matrix Over() const { return y; }
  size_t FloatsARow() const { return x.cols; }

  HDPS_ROW_TASK void operator()(size_t row, size_t d) const {
    float sum = 0.0f;
    for (size_t at = d; at < x.cols; at += y.cols) sum += ElementOf(x, row, at);
    ElementOf(y, row, d) = sum;
  }
};

// Bi-interaction pooling (He and Chua 2017, eq. 4): y [n, dim], y[d] = sum over pairs f < g of
// v_f[d] v_g[d] = 0.5 * ((sum of v[d])^2 - sum of v[d]^2).
struct PairSumRows {
  ConstMatrix x;
  Matrix y;
  Matrix Over() const { return y; }
  size_t FloatsARow() const { return x.cols; }

  HDPS_ROW_TASK void operator()(size_t row, size_t d) const {
    float sum = 0.0f, squares = 0.0f;
    for (size_t at = d; at < x.cols; at += y.cols) {
      const float v = ElementOf(x, row, at);
      sum += v;
      squares += v * v;
    }
    ElementOf(y, row, d) = 0.5f * (sum * sum - squares);
  }
};

// dx[f, d] (+)= dy[d] * (sum of v[d] - v_f[d]); one call handles one d of all vectors.
struct PairSumRowsBackward {
  ConstMatrix x, dy;
  Write write_dx = Write::kOver;
  Matrix dx;
  Matrix Over() const { return dx.Columns(0, dy.cols); }
  size_t FloatsARow() const { return x.cols; }

  HDPS_ROW_TASK void operator()(size_t row, size_t d) const {
    const float factor = ElementOf(dy, row, d);
    float sum = 0.0f;
    for (size_t at = d; at < x.cols; at += dy.cols) sum += ElementOf(x, row, at);
    for (size_t at = d; at < x.cols; at += dy.cols) {
      WriteTo(ElementOf(dx, row, at), write_dx, factor * (sum - ElementOf(x, row, at)));
    }
  }
};

// y [n, dim * dim], y[a * dim + b] = s[a] s[b], for sums s [n, dim]. If s is the sum of the
// vectors, y is the sum of the outer products of all pairs (Qu et al. 2016, eq. 12).
struct OuterRows {
  ConstMatrix sums;
  Matrix y;
  Matrix Over() const { return y.Columns(0, sums.cols); }
  size_t FloatsARow() const { return y.cols; }

  HDPS_ROW_TASK void operator()(size_t row, size_t a) const {
    const float left = ElementOf(sums, row, a);
    for (size_t b = 0; b < sums.cols; ++b) {
      ElementOf(y, row, a * sums.cols + b) = left * ElementOf(sums, row, b);
    }
  }
};

// Adds the gradient of s[a], sum over b of (dy[a, b] + dy[b, a]) s[b], to component a of all
// vectors, or writes it there.
struct OuterRowsBackward {
  ConstMatrix sums, dy;
  Write write_dx = Write::kOver;
  Matrix dx;
  Matrix Over() const { return dx.Columns(0, sums.cols); }
  size_t FloatsARow() const { return dy.cols + dx.cols; }

  HDPS_ROW_TASK void operator()(size_t row, size_t a) const {
    const size_t dim = sums.cols;
    float gradient = 0.0f;
    for (size_t b = 0; b < dim; ++b) {
      gradient += (ElementOf(dy, row, a * dim + b) + ElementOf(dy, row, b * dim + a)) *
                  ElementOf(sums, row, b);
    }
    for (size_t at = a; at < dx.cols; at += dim)
      WriteTo(ElementOf(dx, row, at), write_dx, gradient);
  }
};

}  // namespace hdps
