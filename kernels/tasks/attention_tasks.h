// Attention among the vectors of an example, and of a sequence to a target.
#pragma once

#include "kernels/tasks/row_task.h"

namespace hdps {

// Self-attention over the F vectors of each example (Song et al. 2019, eq. 5-8; Vaswani et al.
// 2017, eq. 1), in `heads` parts of head_dim columns. queries, keys, values, residuals [n * F,
// heads * head_dim] are contiguous, vector f of example i in row i * F + f:
//   weights[i, (h, f, g)] = softmax over the g that f sees of scale * <query_f, key_g> in the
//                           columns of h; 0 of others
//   y[i, f, h] = relu(sum over g of weights * value_g + residual_f)
// Without residuals there is no relu either. A vector sees all of the first counts[i], or of those
// up to itself if `causal`; one behind them sees none. An element is (i, h * F + f).
struct AttendFields {
  size_t fields = 0, heads = 0, head_dim = 0;
  float scale = 1.0f;
  const float* counts = nullptr;  // [n], integers; null: all F.
  bool causal = false;
  const float* queries = nullptr;
  const float* keys = nullptr;
  const float* values = nullptr;
  const float* residuals = nullptr;  // Null: none.
  Matrix weights;                    // [n, heads * F * F]
  Matrix y;                          // [n, F * heads * head_dim]
  Matrix Over() const { return weights.Columns(0, heads * fields); }
  size_t FloatsARow() const { return weights.cols + 4 * y.cols; }

  // Returns how many vectors, the first ones, vector f sees.
  HDPS_ROW_TASK size_t SeenBy(size_t row, size_t f) const {
    const size_t count = counts == nullptr ? fields : static_cast<size_t>(counts[row]);
    if (f >= count) return 0;
    return causal ? f + 1 : count;
  }

  HDPS_ROW_TASK void operator()(size_t row, size_t element) const {
    const size_t width = heads * head_dim, head = element / fields, f = element % fields;
    const size_t seen = SeenBy(row, f);
    // First column of vector 0 of the example.
    const size_t first = row * fields * width + head * head_dim;
    float* const to = &ElementOf(weights, row, element * fields);
    float largest = 0.0f;
    for (size_t g = 0; g < seen; ++g) {
      to[g] = scale * DotOf(queries + first + f * width, keys + first + g * width, head_dim);
      largest = g == 0 || largest < to[g] ? to[g] : largest;
    }
    float total = 0.0f;
    for (size_t g = 0; g < seen; ++g) {
      to[g] = std::exp(to[g] - largest);
      total += to[g];
    }
    for (size_t g = seen; g < fields; ++g) to[g] = 0.0f;
    float* const out = &ElementOf(y, row, f * width + head * head_dim);
    const float* const residual = residuals == nullptr ? nullptr : residuals + first + f * width;
    for (size_t d = 0; d < head_dim; ++d) out[d] = residual == nullptr ? 0.0f : residual[d];
    for (size_t g = 0; g < seen; ++g) {
      const float weight = to[g] = to[g] / total;
      const float* const value = values + first + g * width;
      for (size_t d = 0; d < head_dim; ++d) out[d] += weight * value[d];
    }
    if (residual == nullptr) return;
    for (size_t d = 0; d < head_dim; ++d) out[d] = out[d] > 0.0f ? out[d] : 0.0f;
  }
};

// The first half of its backward, for one query: the gradients of the residual (equal to that of
// the sum before the ReLU), of the scores before softmax, and of the query. An element is as above.
struct AttendFieldsBackward {
  size_t fields = 0, heads = 0, head_dim = 0;
  float scale = 1.0f;
  const float* keys = nullptr;
  const float* values = nullptr;
  ConstMatrix weights;
  ConstMatrix y, dy;            // Without data: dresiduals holds the gradient of y already.
  Matrix dscores;               // Same shape as the weights.
  float* dqueries = nullptr;    // Same shape as the queries.
  float* dresiduals = nullptr;  // Same shape as the residuals.
  Matrix Over() const { return dscores.Columns(0, heads * fields); }
  size_t FloatsARow() const { return weights.cols + 4 * fields * heads * head_dim; }

  HDPS_ROW_TASK void operator()(size_t row, size_t element) const {
    const size_t width = heads * head_dim, head = element / fields, f = element % fields;
    const size_t first = row * fields * width + head * head_dim;
    const size_t column = f * width + head * head_dim;
    float* const dsum = dresiduals + first + f * width;
    for (size_t d = 0; d < head_dim && y.data != nullptr; ++d) {
      dsum[d] = ElementOf(y, row, column + d) > 0.0f ? ElementOf(dy, row, column + d) : 0.0f;
    }
    const float* const weight = &ElementOf(weights, row, element * fields);
    float* const dscore = &ElementOf(dscores, row, element * fields);
    float mean = 0.0f;
    for (size_t g = 0; g < fields; ++g) {
      dscore[g] = DotOf(dsum, values + first + g * width, head_dim);
      mean += weight[g] * dscore[g];
    }
    float* const dquery = dqueries + first + f * width;
    for (size_t d = 0; d < head_dim; ++d) dquery[d] = 0.0f;
    for (size_t g = 0; g < fields; ++g) {
      const float slope = dscore[g] = scale * (weight[g] * (dscore[g] - mean));
      const float* const key = keys + first + g * width;
      for (size_t d = 0; d < head_dim; ++d) dquery[d] += slope * key[d];
    }
  }
};

// The second half, for one key and its value, from the results of the first half. An element is (i,
// h * F + g).
struct AttendedFieldsBackward {
  size_t fields = 0, heads = 0, head_dim = 0;
  const float* queries = nullptr;
  const float* dresiduals = nullptr;
  ConstMatrix weights, dscores;
  float* dkeys = nullptr;
  float* dvalues = nullptr;
  Matrix Over() const { return {nullptr, weights.rows, heads * fields, heads * fields}; }
  size_t FloatsARow() const { return 2 * weights.cols + 4 * fields * heads * head_dim; }

  HDPS_ROW_TASK void operator()(size_t row, size_t element) const {
    const size_t width = heads * head_dim, head = element / fields, g = element % fields;
    const size_t first = row * fields * width + head * head_dim;
    float* const dkey = dkeys + first + g * width;
    float* const dvalue = dvalues + first + g * width;
    for (size_t d = 0; d < head_dim; ++d) dkey[d] = dvalue[d] = 0.0f;
    for (size_t f = 0; f < fields; ++f) {
      const size_t at = (head * fields + f) * fields + g;
      const float slope = ElementOf(dscores, row, at), weight = ElementOf(weights, row, at);
      const float* const query = queries + first + f * width;
      const float* const dsum = dresiduals + first + f * width;
      for (size_t d = 0; d < head_dim; ++d) {
        dkey[d] += slope * query[d];
        dvalue[d] += weight * dsum[d];
      }
    }
  }
};

// The inputs of DIN's activation unit for each key k of a sequence and the target q (Zhou et al.
// 2018, figure 2): row i * L + p of z [n * L, 4 * dim] is [k, q, k - q, k * q]. An element is (i, p
// * dim + d).
struct DinFeatures {
  size_t dim = 0;
  ConstMatrix keys;    // [n, L * dim]
  ConstMatrix target;  // [n, dim]
  Matrix z;
  Matrix Over() const { return {nullptr, keys.rows, keys.cols, keys.cols}; }

  HDPS_ROW_TASK void operator()(size_t row, size_t col) const {
    const size_t position = col / dim, d = col % dim;
    const float k = ElementOf(keys, row, col), q = ElementOf(target, row, d);
    float* const to = &ElementOf(z, row * (keys.cols / dim) + position, d);
    to[0] = k;
    to[dim] = q;
    to[2 * dim] = k - q;
    to[3 * dim] = k * q;
  }
};

// dkeys += the gradient of the keys from that of z.
struct DinFeaturesBackward {
  size_t dim = 0;
  ConstMatrix target, dz;
  Matrix dkeys;
  Matrix Over() const { return dkeys; }

  HDPS_ROW_TASK void operator()(size_t row, size_t col) const {
    const size_t position = col / dim, d = col % dim;
    const float* const from = &ElementOf(dz, row * (dkeys.cols / dim) + position, d);
    ElementOf(dkeys, row, col) +=
        from[0] + from[2 * dim] + from[3 * dim] * ElementOf(target, row, d);
  }
};

// dtarget (+)= the gradient of the target, summed in order of position.
struct DinQueryBackward {
  size_t dim = 0;
  ConstMatrix keys, dz;
  Write write = Write::kOver;
  Matrix dtarget;
  Matrix Over() const { return dtarget; }
  size_t FloatsARow() const { return 4 * keys.cols; }

  HDPS_ROW_TASK void operator()(size_t row, size_t d) const {
    const size_t length = keys.cols / dim;
    float sum = 0.0f;
    for (size_t p = 0; p < length; ++p) {
      const float* const from = &ElementOf(dz, row * length + p, d);
      sum += from[dim] - from[2 * dim] + from[3 * dim] * ElementOf(keys, row, p * dim + d);
    }
    WriteTo(ElementOf(dtarget, row, d), write, sum);
  }
};

}  // namespace hdps
