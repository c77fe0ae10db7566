// Operations on matrices that are the same for every element or every row, written once for host
// and device.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <variant>

#include "kernels/matrix.h"
#include "kernels/tasks/attention_tasks.h"
#include "kernels/tasks/bilinear_tasks.h"
#include "kernels/tasks/cin_tasks.h"
#include "kernels/tasks/column_norm.h"
#include "kernels/tasks/cross_mix_tasks.h"
#include "kernels/tasks/element_chain.h"
#include "kernels/tasks/field_weight_tasks.h"
#include "kernels/tasks/gradient_tasks.h"
#include "kernels/tasks/gru_tasks.h"
#include "kernels/tasks/pair_losses.h"
#include "kernels/tasks/row_task.h"
#include "kernels/tasks/sequence_tasks.h"
#include "kernels/tasks/tower_tasks.h"
#include "kernels/tasks/vector_sum_tasks.h"
#include "kernels/tasks/weigh_tasks.h"

namespace hdps {

enum class Activation : uint8_t;  // common/job/activation.h
enum class LossKind : uint8_t;    // common/job/spec/loss_kind.h

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
  Activation kind = {};  // kNone
  ConstMatrix z;
  Matrix y;
  Matrix Over() const { return y; }
  HDPS_ROW_TASK void operator()(size_t row, size_t col) const;  // task_bodies.h
};

// Turns dy, the gradient of act(z), into that of z.
struct ActivateBackward {
  Activation kind = {};  // kNone
  ConstMatrix z;
  Matrix dy;
  Matrix Over() const { return dy; }
  HDPS_ROW_TASK void operator()(size_t row, size_t col) const;
};

// Layer normalization (Ba et al. 2016): y = normal * gain + bias, where normal is x minus its mean
// over the row, divided by the root of its variance + epsilon. Sums are in order, in double.
struct NormalizeRows {
  float epsilon = 0.0f;
  const float* gain = nullptr;  // [cols], like bias.
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
// without data is not computed. normal becomes dy * normal, whose column sums are the gradient of
// the gain.
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

// dx[i, f, d] (+)= dy[i] * (sum of v[d] - v_f[d]); one call handles one d of all vectors.
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

// Its backward except for dx, which is dy: du = dy * x0, and dx0 (+)= dy * u.
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

// The loss of each example and its gradient, computed in double. No exponential of a positive
// number is taken, so nothing overflows. Null probabilities and a gradient without data are not
// computed. For an example of weight w, loss and gradient are multiplied by w.
// - kLogloss: labels in [0, 1], logits [n, 1]; loss = p y log(1 + exp(-z)) + (1 - y) log(1 +
//   exp(z)) with p the positive weight; gradient = (1 + (p - 1) y) sigmoid(z) - p y; one
//   probability an example, that of class 1.
// - kSoftmax: labels are class numbers < logits.cols; loss = log(sum of exp(z_c)) - z_y; gradient =
//   softmax(z) - onehot(y); one probability a class.
// - kSquared: any labels, logits [n, 1]; loss = (z - y)^2; gradient = 2 (z - y); the "probability"
//   is z.
struct LossRows {
  LossKind kind = {};  // kLogloss
  ConstMatrix logits;
  const float* labels = nullptr;   // [n]
  Matrix gradient;                 // Same shape as the logits.
  float* probabilities = nullptr;  // [n] or [n, classes]
  double* losses = nullptr;        // [n]
  const float* weights = nullptr;  // [n]; null: all are 1.
  double positive_weight = 1;      // For kLogloss.
  Matrix Over() const { return {nullptr, logits.rows, logits.cols, logits.cols}; }

  HDPS_ROW_TASK void operator()(size_t row) const;

 private:
  HDPS_ROW_TASK void Give(size_t row, size_t col, double score, double slope) const {
    if (probabilities != nullptr) {
      probabilities[row * logits.cols + col] = static_cast<float>(score);
    }
    if (gradient.data == nullptr) return;
    if (weights != nullptr) slope *= weights[row];
    ElementOf(gradient, row, col) = static_cast<float>(slope);
  }
  HDPS_ROW_TASK void Logloss(size_t row) const {
    const double z = ElementOf(logits, row, 0), y = labels[row];
    const double e = std::exp(-std::fabs(z));
    const double of_all = 1.0 + (positive_weight - 1.0) * y, of_positive = positive_weight * y;
    losses[row] = of_all * ((z < 0.0 ? 0.0 : z) + std::log1p(e)) - of_positive * z;
    const double probability = z >= 0 ? 1.0 / (1.0 + e) : e / (1.0 + e);
    Give(row, 0, probability, of_all * probability - of_positive);
  }
  HDPS_ROW_TASK void Squared(size_t row) const {
    const double z = ElementOf(logits, row, 0), off = z - labels[row];
    losses[row] = off * off;
    Give(row, 0, z, 2.0 * off);
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
      const double probability = std::exp(z[c] - top) / total;
      Give(row, c, probability, probability - (c == label ? 1.0 : 0.0));
    }
  }
};

using RowTask = std::variant<
    AddBias, Activate, ActivateBackward, NormalizeRows, NormalizeRowsBackward, FmRows,
    FmRowsBackward, CrossRows, CrossRowsBackward, LossRows, RunChain, RunChainBackward, SumColumns,
    SumChainBackward, AddBlockSums, ColumnStatistics, ColumnGradients, NormalizeColumnsBackward,
    BprRows, InnerProductRows, SampledSoftmaxRows,
    // Products of fields.
    SumVectors, PairSumRows, PairSumRowsBackward, OuterRows, OuterRowsBackward, MeanOfVectors,
    MeanOfVectorsBackward, ScaleVectors, ScaleVectorsBackward, BilinearRows, BilinearRowsBackward,
    SplitVectors, SplitVectorsBackward, PairProducts, MapsBackward, FirstBackward, TwiceBackward,
    FoldPairs, FoldPairsBackward, SumComponents, SumComponentsBackward, GateExperts,
    GateExpertsBackward, TanhBackward,
    // Layers over sequences, fields, experts and towers.
    AttendFields, AttendFieldsBackward, AttendedFieldsBackward, DinFeatures, DinFeaturesBackward,
    DinQueryBackward, MaskRows, SoftmaxRows, SoftmaxRowsBackward, GruStep, GruStepBackward,
    NextItemStates, NextItemItems, AddPositions, AlignVectors, LastVector, LastVectorBackward,
    WeighVectors, WeighVectorsBackward, WeightsBackward, ScaleToLength, ScaleToLengthBackward,
    InnerRows, MultiplyByColumn, JointLogit, JointLogitBackward,
    // Gradients.
    FillElements, ScaleElements>;

}  // namespace hdps
