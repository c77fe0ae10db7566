// Steps of a gated recurrent unit, and the loss of the item that follows a state.
#pragma once

#include "kernels/tasks/row_task.h"

namespace hdps {

HDPS_ROW_TASK inline float SigmoidOf(float z) {
  const float e = std::exp(-std::fabs(z));
  return z >= 0.0f ? 1.0f / (1.0f + e) : e / (1.0f + e);
}

// Step t of a GRU (Zhou et al. 2019, eq. 1-4, h the state before, of `units`) or, with weights a
// [n, steps], of an AUGRU (eq. 10-11), from the products with the input and with the state:
//   u = a sigmoid(x_u + h_u)   r = sigmoid(x_r + h_r)   c = tanh(x_c + r * h_c)
//   state = (1 - u) * h + u * c
// A step behind counts[row] gives 0. `gates` has x_u, x_r, x_c side by side, and then sigmoid(x_u +
// h_u), r, c.
struct GruStep {
  size_t step = 0;
  const float* counts = nullptr;  // [n], integers.
  ConstMatrix weights;            // Without data: all 1.
  ConstMatrix before;             // [n, units]: h.
  ConstMatrix products;           // [n, 3 * units]: h_u, h_r, h_c.
  Matrix gates;                   // [n, 3 * units]
  Matrix state;                   // [n, units]
  Matrix Over() const { return state; }
  size_t FloatsARow() const { return 8 * state.cols; }

  HDPS_ROW_TASK void operator()(size_t row, size_t j) const {
    const size_t r_at = state.cols + j, c_at = 2 * state.cols + j;
    float &u = ElementOf(gates, row, j), &r = ElementOf(gates, row, r_at);
    float& c = ElementOf(gates, row, c_at);
    u = SigmoidOf(u + ElementOf(products, row, j));
    r = SigmoidOf(r + ElementOf(products, row, r_at));
    c = std::tanh(c + r * ElementOf(products, row, c_at));
    const float share = weights.data == nullptr ? u : ElementOf(weights, row, step) * u;
    const bool present = step < static_cast<size_t>(counts[row]);
    ElementOf(state, row, j) =
        present ? (1.0f - share) * ElementOf(before, row, j) + share * c : 0.0f;
  }
};

// Its backward, from the last step to the first. `gates` and `products` become the gradients of the
// products with the input and with the state; `carried`, the gradient of the state from the step
// behind, becomes its direct share for the state before.
struct GruStepBackward {
  size_t step = 0;
  const float* counts = nullptr;
  ConstMatrix weights;  // As above.
  ConstMatrix before;
  ConstMatrix dstate;  // [n, units]: the gradient of the state from elsewhere.
  Matrix gates, products, carried;
  Matrix dweights;  // [n, steps], of which it writes column `step`; without data: none.
  Matrix Over() const { return carried; }
  size_t FloatsARow() const { return 10 * carried.cols; }

  HDPS_ROW_TASK void operator()(size_t row) const {
    const size_t units = carried.cols;
    const bool present = step < static_cast<size_t>(counts[row]);
    const float weight = weights.data == nullptr ? 1.0f : ElementOf(weights, row, step);
    float of_weight = 0.0f;
    for (size_t j = 0; j < units; ++j) {
      float &u = ElementOf(gates, row, j), &r = ElementOf(gates, row, units + j);
      float& c = ElementOf(gates, row, 2 * units + j);
      float& product = ElementOf(products, row, 2 * units + j);
      float& carry = ElementOf(carried, row, j);
      const float d = present ? ElementOf(dstate, row, j) + carry : 0.0f;
      const float share = weight * u, dshare = d * (c - ElementOf(before, row, j));
      of_weight += dshare * u;
      carry = d * (1.0f - share);
      const float dc = d * share * (1.0f - c * c), dr = dc * product * r * (1.0f - r);
      const float du = dshare * weight * u * (1.0f - u);
      product = dc * r;
      c = dc;
      ElementOf(products, row, units + j) = r = dr;
      ElementOf(products, row, j) = u = du;
    }
    if (dweights.data != nullptr) ElementOf(dweights, row, step) = of_weight;
  }
};

// The loss of DIEN's interests (Zhou et al. 2019, eq. 5) of each example i and each of its states
// h_t that an item e_{t+1} follows:
//   -log sigmoid(<h_t, e_{t+1}>) - log(1 - sigmoid(<h_t, e'_{t+1}>))
// times `factor` and the weight of the example. e' are the items of the next example, behind the
// last of the first, and the second term is missing where that has none at t + 1. Two tasks add the
// gradients; both are called for vectors (i, t).
struct NextItemShape {
  size_t dim = 0;
  float factor = 0;
  const float* weights = nullptr;  // [n]: of examples; null: all 1.
  const float* counts = nullptr;   // [n], integers.
  ConstMatrix states, items;       // [n, vectors * dim]

  HDPS_ROW_TASK size_t Next(size_t row) const { return row + 1 == states.rows ? 0 : row + 1; }
  HDPS_ROW_TASK bool Has(size_t row, size_t t) const {
    return t < static_cast<size_t>(counts[row]);
  }
  // Returns the slope of the loss of the state (row, t) by its product with the item (of, t + 1).
  HDPS_ROW_TASK float Slope(size_t row, size_t t, size_t of) const {
    if (!Has(row, t + 1) || !Has(of, t + 1)) return 0.0f;
    const float product =
        DotOf(&ElementOf(states, row, t * dim), &ElementOf(items, of, (t + 1) * dim), dim);
    const float weight = weights == nullptr ? factor : factor * weights[row];
    return weight * (SigmoidOf(product) - (of == row ? 1.0f : 0.0f));
  }
};

// dstates += their gradients.
struct NextItemStates {
  NextItemShape of;
  Matrix dstates;
  Matrix Over() const { return dstates.Columns(0, dstates.cols / of.dim); }
  size_t FloatsARow() const { return 6 * dstates.cols; }

  HDPS_ROW_TASK void operator()(size_t row, size_t t) const {
    if (!of.Has(row, t + 1)) return;
    const size_t next = of.Next(row);
    const float right = of.Slope(row, t, row);
    const float wrong = next == row ? 0.0f : of.Slope(row, t, next);
    for (size_t d = 0; d < of.dim; ++d) {
      const size_t item = (t + 1) * of.dim + d;
      float sum = right * ElementOf(of.items, row, item);
      if (wrong != 0.0f) sum += wrong * ElementOf(of.items, next, item);
      ElementOf(dstates, row, t * of.dim + d) += sum;
    }
  }
};

// ditems (+)= their gradients: of an item as the one that follows, and as another example's wrong
// one.
struct NextItemItems {
  NextItemShape of;
  Write write = Write::kOver;
  Matrix ditems;
  Matrix Over() const { return ditems.Columns(0, ditems.cols / of.dim); }
  size_t FloatsARow() const { return 6 * ditems.cols; }

  HDPS_ROW_TASK void operator()(size_t row, size_t p) const {
    const size_t before = row == 0 ? of.states.rows - 1 : row - 1, t = p - 1;
    const float right = p == 0 ? 0.0f : of.Slope(row, t, row);
    const float wrong = p == 0 || before == row ? 0.0f : of.Slope(before, t, row);
    for (size_t d = 0; d < of.dim; ++d) {
      float sum = 0.0f;
      if (right != 0.0f) sum += right * ElementOf(of.states, row, t * of.dim + d);
      if (wrong != 0.0f) sum += wrong * ElementOf(of.states, before, t * of.dim + d);
      WriteTo(ElementOf(ditems, row, p * of.dim + d), write, sum);
    }
  }
};

}  // namespace hdps
