// Work on matrices that is the same for every element or every row, written once for host and
// device.
#pragma once

#include <cstddef>
#include <cstdint>
#include <variant>

#include "common/job/activation.h"
#include "common/job/model_spec.h"
#include "kernels/matrix.h"
#include "kernels/tasks/bilinear_tasks.h"
#include "kernels/tasks/cin_tasks.h"
#include "kernels/tasks/cross_mix_tasks.h"
#include "kernels/tasks/field_weight_tasks.h"
#include "kernels/tasks/row_task.h"
#include "kernels/tasks/vector_sum_tasks.h"

namespace hdps {

// y = x + bias.
struct AddBias {
  const float* bias = nullptr;  // [cols]
  ConstMatrix x;
  Matrix y;
  Matrix Over() const { return y; }
  HDPS_ROW_TASK void operator()(size_t row, size_t col) const {
    ElementOf(y, row, col) = ElementOf(x, row, col) + bias[col];
  }
};

// y = act(z).
struct Activate {
  Activation kind = Activation::kNone;
  ConstMatrix z;
  Matrix y;
  Matrix Over() const { return y; }
  HDPS_ROW_TASK void operator()(size_t row, size_t col) const {
    ElementOf(y, row, col) = ActivationOf(kind, ElementOf(z, row, col));
  }
};

// dy, the gradient of act(z), becomes that of z.
struct ActivateBackward {
  Activation kind = Activation::kNone;
  ConstMatrix z;
  Matrix dy;
  Matrix Over() const { return dy; }
  HDPS_ROW_TASK void operator()(size_t row, size_t col) const {
    ElementOf(dy, row, col) *= ActivationSlope(kind, ElementOf(z, row, col));
  }
};

// y (+)= x / (1 - rate) for the elements that are kept, 0 for the others. Each is kept with
// probability 1 - rate, which (stream, position of the row in the epoch, column) decides alone.
struct Dropout {
  uint64_t stream = 0;
  uint64_t first_row = 0, row_stride = 1;  // Row r is at position first_row + r * row_stride.
  float rate = 0.0f;
  ConstMatrix x;
  Write write = Write::kOver;
  Matrix y;
  Matrix Over() const { return y; }

  // The finalizer of splitmix64 (Steele et al. 2014).
  HDPS_ROW_TASK static uint64_t Mixed(uint64_t bits) {
    bits = (bits ^ (bits >> 30)) * 0xbf58476d1ce4e5b9u;
    bits = (bits ^ (bits >> 27)) * 0x94d049bb133111ebu;
    return bits ^ (bits >> 31);
  }
  HDPS_ROW_TASK bool Keeps(size_t row, size_t col) const {
    const uint64_t position = first_row + row * row_stride;
    const uint64_t of_row = Mixed(stream + 0x9e3779b97f4a7c15u * (position + 1));
    const uint64_t bits = Mixed(of_row + 0x9e3779b97f4a7c15u * (col + 1));
    return static_cast<float>(bits >> 40) * 0x1.0p-24f >= rate;
  }
  HDPS_ROW_TASK void operator()(size_t row, size_t col) const {
    const float value = Keeps(row, col) ? ElementOf(x, row, col) / (1.0f - rate) : 0.0f;
    WriteTo(ElementOf(y, row, col), write, value);
  }
};

// Layer normalization (Ba et al. 2016): y = normal * gain + bias, where normal is x less its mean
// over the row, divided by the root of its variance + epsilon. Sums are in order, in double.
struct NormalizeRows {
  float epsilon = 0.0f;
  const float* gain = nullptr;  // [cols], as bias.
  const float* bias = nullptr;
  ConstMatrix x;
  Matrix normal, y;
  float* scales = nullptr;  // [rows]: one divided by that root.
  Matrix Over() const { return y; }

  HDPS_ROW_TASK void operator()(size_t row) const {
    double sum = 0, squares = 0;
    for (size_t j = 0; j < y.cols; ++j) sum += static_cast<double>(ElementOf(x, row, j));
    const double mean = sum / static_cast<double>(y.cols);
    for (size_t j = 0; j < y.cols; ++j) {
      const double apart = static_cast<double>(ElementOf(x, row, j)) - mean;
      squares += apart * apart;
    }
    const double variance = squares / static_cast<double>(y.cols);
    const double scale = 1.0 / std::sqrt(variance + static_cast<double>(epsilon));
    scales[row] = static_cast<float>(scale);
    for (size_t j = 0; j < y.cols; ++j) {
      const double apart = static_cast<double>(ElementOf(x, row, j)) - mean;
      const float value = static_cast<float>(apart * scale);
      ElementOf(normal, row, j) = value;
      ElementOf(y, row, j) = value * gain[j] + bias[j];
    }
  }
};

// Its backward: dx (+)= scale * (g - mean(g) - normal * mean(g * normal)) with g = dy * gain. dx
// without data is left out. normal becomes dy * normal, whose columns' sums are the gradient of the
// gain.
struct NormalizeRowsBackward {
  const float* gain = nullptr;
  const float* scales = nullptr;
  ConstMatrix dy;
  Write write_dx = Write::kOver;
  Matrix dx, normal;
  Matrix Over() const { return normal; }

  HDPS_ROW_TASK void operator()(size_t row) const {
    double sum = 0, along = 0;
    for (size_t j = 0; j < normal.cols; ++j) {
      const double g = static_cast<double>(ElementOf(dy, row, j) * gain[j]);
      sum += g;
      along += g * static_cast<double>(ElementOf(normal, row, j));
    }
    const auto mean = static_cast<float>(sum / static_cast<double>(normal.cols));
    const auto share = static_cast<float>(along / static_cast<double>(normal.cols));
    for (size_t j = 0; j < normal.cols; ++j) {
      const float d = ElementOf(dy, row, j), value = ElementOf(normal, row, j);
      if (dx.data != nullptr) {
        WriteTo(ElementOf(dx, row, j), write_dx,
                scales[row] * (d * gain[j] - mean - value * share));
      }
      ElementOf(normal, row, j) = d * value;
    }
  }
};

// The second-order term of a factorization machine. x [n, F * dim] holds F vectors an example;
// y[i, 0] = 0.5 * sum over d of ((sum of v_f[d])^2 - sum of v_f[d]^2)  (Rendle 2010, eq. 5).
struct FmRows {
  size_t dim = 0;
  ConstMatrix x;
  Matrix y;
  Matrix Over() const { return y; }
  size_t FloatsARow() const { return x.cols; }

  HDPS_ROW_TASK void operator()(size_t row) const {
    const float* const v = x.data + row * x.stride;
    float total = 0.0f;
    for (size_t d = 0; d < dim; ++d) {
      float sum = 0.0f, squares = 0.0f;
      for (size_t at = d; at < x.cols; at += dim) {
        sum += v[at];
        squares += v[at] * v[at];
      }
      total += sum * sum - squares;
    }
    ElementOf(y, row, 0) = 0.5f * total;
  }
};

// dx[i, f, d] (+)= dy[i] * (sum of v[d] - v_f[d]), for one d of all vectors at a time.
struct FmRowsBackward {
  size_t dim = 0;
  ConstMatrix x, dy;
  Write write_dx = Write::kOver;
  Matrix dx;
  Matrix Over() const { return dx.Columns(0, dim); }
  size_t FloatsARow() const { return x.cols; }

  HDPS_ROW_TASK void operator()(size_t row, size_t d) const {
    const float* const v = x.data + row * x.stride;
    float* const to = dx.data + row * dx.stride;
    const float factor = ElementOf(dy, row, 0);
    const size_t step = dim, end = x.cols;
    float sum = 0.0f;
    for (size_t at = d; at < end; at += step) sum += v[at];
    if (write_dx == Write::kAdd) {
      for (size_t at = d; at < end; at += step) to[at] += factor * (sum - v[at]);
    } else {
      for (size_t at = d; at < end; at += step) to[at] = factor * (sum - v[at]);
    }
  }
};

// One layer of DCN-v2 (Wang et al. 2021, eq. 1) after its product u = x W + b: y = x0 * u + x.
struct CrossRows {
  ConstMatrix x0, u, x;
  Matrix y;
  Matrix Over() const { return y; }
  HDPS_ROW_TASK void operator()(size_t row, size_t col) const {
    ElementOf(y, row, col) =
        ElementOf(x0, row, col) * ElementOf(u, row, col) + ElementOf(x, row, col);
  }
};

// Its backward, but for dx, which is dy: du = dy * x0, and dx0 (+)= dy * u.
struct CrossRowsBackward {
  ConstMatrix x0, u, dy;
  Matrix du;
  Write write_dx0 = Write::kOver;
  Matrix dx0;
  Matrix Over() const { return du; }
  HDPS_ROW_TASK void operator()(size_t row, size_t col) const {
    const float d = ElementOf(dy, row, col);
    ElementOf(du, row, col) = d * ElementOf(x0, row, col);
    WriteTo(ElementOf(dx0, row, col), write_dx0, d * ElementOf(u, row, col));
  }
};

// The loss of each example and its gradient, in double inside; no exponent of a positive number, so
// nothing overflows. Null probabilities and a gradient without data are left out.
// kLogloss: labels in [0, 1], logits [n, 1]; loss = log(1 + exp(z)) - y z, gradient = sigmoid(z) -
// y, and one probability an example, of class 1.
// kSoftmax: labels are class numbers < logits.cols; loss = log(sum of exp(z_c)) - z_y, gradient =
// softmax(z) - onehot(y), and a probability a class.
struct LossRows {
  LossKind kind = LossKind::kLogloss;
  ConstMatrix logits;
  const float* labels = nullptr;   // [n]
  Matrix gradient;                 // As the logits.
  float* probabilities = nullptr;  // [n] or [n, classes]
  double* losses = nullptr;        // [n]
  Matrix Over() const { return {nullptr, logits.rows, logits.cols, logits.cols}; }

  HDPS_ROW_TASK void operator()(size_t row) const {
    kind == LossKind::kLogloss ? Logloss(row) : Softmax(row);
  }

 private:
  HDPS_ROW_TASK void Give(size_t row, size_t col, double probability, double wanted) const {
    if (probabilities != nullptr) {
      probabilities[row * logits.cols + col] = static_cast<float>(probability);
    }
    if (gradient.data != nullptr) {
      ElementOf(gradient, row, col) = static_cast<float>(probability - wanted);
    }
  }
  HDPS_ROW_TASK void Logloss(size_t row) const {
    const double z = ElementOf(logits, row, 0), y = labels[row];
    const double e = std::exp(-std::fabs(z));
    losses[row] = (z < 0.0 ? 0.0 : z) + std::log1p(e) - y * z;
    Give(row, 0, z >= 0 ? 1.0 / (1.0 + e) : e / (1.0 + e), y);
  }
  HDPS_ROW_TASK void Softmax(size_t row) const {
    const float* const z = logits.data + row * logits.stride;
    const auto label = static_cast<size_t>(labels[row]);
    float largest = z[0];
    for (size_t c = 1; c < logits.cols; ++c) largest = largest < z[c] ? z[c] : largest;
    const double top = largest;
    double total = 0;
    for (size_t c = 0; c < logits.cols; ++c) total += std::exp(z[c] - top);
    losses[row] = std::log(total) + top - z[label];
    for (size_t c = 0; c < logits.cols; ++c) {
      Give(row, c, std::exp(z[c] - top) / total, c == label ? 1.0 : 0.0);
    }
  }
};

using RowTask =
    std::variant<AddBias, Activate, ActivateBackward, Dropout, NormalizeRows, NormalizeRowsBackward,
                 FmRows, FmRowsBackward, CrossRows, CrossRowsBackward, LossRows,
                 // Of products of fields.
                 SumVectors, PairSumRows, PairSumRowsBackward, OuterRows, OuterRowsBackward,
                 MeanOfVectors, MeanOfVectorsBackward, ScaleVectors, ScaleVectorsBackward,
                 BilinearRows, BilinearRowsBackward, SplitVectors, SplitVectorsBackward,
                 CinProducts, CinProductsBackward, SumComponents, SumComponentsBackward,
                 GateExperts, GateExpertsBackward, TanhBackward>;

}  // namespace hdps
