// Weighted sums of an example's vectors, and the softmax that turns scores into weights.
#pragma once

#include "kernels/tasks/row_task.h"

namespace hdps {

// y = x in the first counts[row] vectors of dim columns, 0 in the others.
struct MaskRows {
  const float* counts = nullptr;  // [rows], integers.
  ConstMatrix x;
  Matrix y;
  size_t dim = 1;
  Matrix Over() const { return y; }
  HDPS_ROW_TASK void operator()(size_t row, size_t col) const {
    ElementOf(y, row, col) =
        static_cast<float>(col / dim) < counts[row] ? ElementOf(x, row, col) : 0.0f;
  }
};

// y = softmax of the first counts[row] columns of x, 0 in the others; null counts: of all columns.
struct SoftmaxRows {
  const float* counts = nullptr;
  ConstMatrix x;
  Matrix y;
  Matrix Over() const { return y; }

  HDPS_ROW_TASK void operator()(size_t row) const {
    const size_t count = counts == nullptr ? y.cols : static_cast<size_t>(counts[row]);
    float largest = 0.0f, total = 0.0f;
    for (size_t j = 0; j < count; ++j) {
      const float value = ElementOf(x, row, j);
      largest = j == 0 || largest < value ? value : largest;
    }
    for (size_t j = 0; j < count; ++j) {
      const float value = std::exp(ElementOf(x, row, j) - largest);
      ElementOf(y, row, j) = value;
      total += value;
    }
    for (size_t j = 0; j < count; ++j) ElementOf(y, row, j) /= total;
    for (size_t j = count; j < y.cols; ++j) ElementOf(y, row, j) = 0.0f;
  }
};

// dx (+)= y * (dy - sum of y * dy over the row), which is 0 where y is 0.
struct SoftmaxRowsBackward {
  ConstMatrix y, dy;
  Write write = Write::kOver;
  Matrix dx;
  Matrix Over() const { return dx; }

  HDPS_ROW_TASK void operator()(size_t row) const {
    float mean = 0.0f;
    for (size_t j = 0; j < dx.cols; ++j) mean += ElementOf(y, row, j) * ElementOf(dy, row, j);
    for (size_t j = 0; j < dx.cols; ++j) {
      WriteTo(ElementOf(dx, row, j), write, ElementOf(y, row, j) * (ElementOf(dy, row, j) - mean));
    }
  }
};

// y[i, d] = sum over p of weights[i, p] * vectors[i, p * dim + d], in order of p; dim is y.cols.
struct WeighVectors {
  ConstMatrix weights, vectors;
  Matrix y;
  Matrix Over() const { return y; }
  size_t FloatsARow() const { return vectors.cols; }

  HDPS_ROW_TASK void operator()(size_t row, size_t d) const {
    float sum = 0.0f;
    for (size_t p = 0; p < weights.cols; ++p) {
      sum += ElementOf(weights, row, p) * ElementOf(vectors, row, p * y.cols + d);
    }
    ElementOf(y, row, d) = sum;
  }
};

// dvectors (+)= weights * dy.
struct WeighVectorsBackward {
  ConstMatrix weights, dy;
  Write write = Write::kOver;
  Matrix dvectors;
  Matrix Over() const { return dvectors; }
  HDPS_ROW_TASK void operator()(size_t row, size_t col) const {
    WriteTo(ElementOf(dvectors, row, col), write,
            ElementOf(weights, row, col / dy.cols) * ElementOf(dy, row, col % dy.cols));
  }
};

// dweights[i, p] = <dy, vector p>.
struct WeightsBackward {
  ConstMatrix vectors, dy;
  Matrix dweights;
  Matrix Over() const { return dweights; }
  size_t FloatsARow() const { return vectors.cols; }
  HDPS_ROW_TASK void operator()(size_t row, size_t p) const {
    ElementOf(dweights, row, p) =
        DotOf(&ElementOf(vectors, row, p * dy.cols), &ElementOf(dy, row, 0), dy.cols);
  }
};

}  // namespace hdps
