// The last steps of models with two towers or several tasks.
#pragma once

#include "kernels/tasks/row_task.h"

namespace hdps {

// y = x * factor / max(length of the row, epsilon); the length is summed in order, in double.
struct ScaleToLength {
  float epsilon = 0.0f, factor = 1.0f;
  ConstMatrix x;
  Matrix y;
  float* scales = nullptr;  // [rows]: one divided by that length; negative if epsilon was larger.
  Matrix Over() const { return y; }

  HDPS_ROW_TASK void operator()(size_t row) const {
    double squares = 0;
    for (size_t j = 0; j < y.cols; ++j) {
      const double value = ElementOf(x, row, j);
      squares += value * value;
    }
    const double length = std::sqrt(squares), least = epsilon;
    const double scale = 1.0 / (length < least ? least : length);
    scales[row] = static_cast<float>(length < least ? -scale : scale);
    for (size_t j = 0; j < y.cols; ++j) {
      const double value = ElementOf(x, row, j);
      ElementOf(y, row, j) = static_cast<float>(value * scale * static_cast<double>(factor));
    }
  }
};

// dx (+)= factor * scale * (dy - u <u, dy>), with u the row scaled to length 1; the second term is
// left out for a row shorter than epsilon.
struct ScaleToLengthBackward {
  float factor = 1.0f;
  const float* scales = nullptr;
  ConstMatrix x, dy;
  Write write = Write::kOver;
  Matrix dx;
  Matrix Over() const { return dx; }

  HDPS_ROW_TASK void operator()(size_t row) const {
    const bool bent = scales[row] > 0.0f;
    const double scale = std::fabs(scales[row]);
    double along = 0;
    for (size_t j = 0; bent && j < dx.cols; ++j) {
      const double value = ElementOf(x, row, j);
      along += value * scale * static_cast<double>(ElementOf(dy, row, j));
    }
    for (size_t j = 0; j < dx.cols; ++j) {
      const double d = ElementOf(dy, row, j), value = ElementOf(x, row, j);
      WriteTo(
          ElementOf(dx, row, j), write,
          static_cast<float>(static_cast<double>(factor) * scale * (d - value * scale * along)));
    }
  }
};

// y[i, 0] = <a_i, b_i>.
struct InnerRows {
  ConstMatrix a, b;
  Matrix y;
  Matrix Over() const { return y; }
  size_t FloatsARow() const { return a.cols; }
  HDPS_ROW_TASK void operator()(size_t row) const {
    ElementOf(y, row, 0) = DotOf(&ElementOf(a, row, 0), &ElementOf(b, row, 0), a.cols);
  }
};

// y (+)= x * column[row].
struct MultiplyByColumn {
  ConstMatrix x, column;
  Write write = Write::kOver;
  Matrix y;
  Matrix Over() const { return y; }
  HDPS_ROW_TASK void operator()(size_t row, size_t col) const {
    WriteTo(ElementOf(y, row, col), write, ElementOf(x, row, col) * ElementOf(column, row, 0));
  }
};

// The logit of sigmoid(a) * sigmoid(b), z = -log(e^-a + e^-b + e^-(a + b)), and the shares of e^-a,
// e^-b and e^-(a + b) in the sum, which give the slopes.
struct JointShares {
  double z, a, b, both;
  HDPS_ROW_TASK JointShares(double of_a, double of_b) {
    const double sum = of_a + of_b;
    double largest = -of_a > -of_b ? -of_a : -of_b;
    largest = largest > -sum ? largest : -sum;
    a = std::exp(-of_a - largest);
    b = std::exp(-of_b - largest);
    both = std::exp(-sum - largest);
    const double total = a + b + both;
    z = -largest - std::log(total);
    a /= total;
    b /= total;
    both /= total;
  }
};

// z = the logit of two events together, where b is conditional on a (Ma et al. 2018, eq. 1, in
// logits).
struct JointLogit {
  ConstMatrix a, b;
  Matrix z;
  Matrix Over() const { return z; }
  HDPS_ROW_TASK void operator()(size_t row, size_t col) const {
    ElementOf(z, row, col) =
        static_cast<float>(JointShares(ElementOf(a, row, col), ElementOf(b, row, col)).z);
  }
};

// Its backward: the gradient of a. For that of b exchange a and b.
struct JointLogitBackward {
  ConstMatrix a, b, dz;
  Write write = Write::kOver;
  Matrix da;
  Matrix Over() const { return da; }
  HDPS_ROW_TASK void operator()(size_t row, size_t col) const {
    const JointShares shares(ElementOf(a, row, col), ElementOf(b, row, col));
    const double slope = shares.a + shares.both;
    WriteTo(ElementOf(da, row, col), write,
            static_cast<float>(static_cast<double>(ElementOf(dz, row, col)) * slope));
  }
};

}  // namespace hdps
