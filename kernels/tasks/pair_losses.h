// Losses that compare the examples of a batch with each other.
#pragma once

#include <cmath>
#include <cstddef>

#include "kernels/matrix.h"
#include "kernels/tasks/row_task.h"

namespace hdps {

// Bayesian personalized ranking (Rendle et al. 2009, eq. 5) over all pairs of a positive and a
// negative example of one group. With m negatives in its group, a positive i of weight w has
//   loss_i = w / m * sum over the negatives j of log(1 + exp(z_j - z_i)),
// and none if m is 0; negatives have no loss of their own. The gradient is that of the sum. Sums
// run in the order of `members`, in double.
struct BprRows {
  ConstMatrix logits;              // [n, 1]
  const float* labels = nullptr;   // [n]: above 0.5 is positive.
  const float* weights = nullptr;  // [n]; null: all are 1.
  // Integers below 2^24: example i belongs to the group members[begin[i] .. end[i]).
  const float *members = nullptr, *begin = nullptr, *end = nullptr;  // [n] each
  Matrix gradient;                                                   // [n, 1]
  float* losses = nullptr;                                           // [n]
  Matrix Over() const { return gradient; }

  HDPS_ROW_TASK bool IsPositive(size_t row) const { return labels[row] > 0.5f; }
  HDPS_ROW_TASK void operator()(size_t row) const {
    const auto first = static_cast<size_t>(begin[row]), last = static_cast<size_t>(end[row]);
    const double z = ElementOf(logits, row, 0);
    const bool positive = IsPositive(row);
    double loss = 0, slope = 0, negatives = 0;
    for (size_t m = first; m < last; ++m) {
      const auto other = static_cast<size_t>(members[m]);
      const bool other_positive = IsPositive(other);
      if (!other_positive) negatives += 1;
      if (positive == other_positive) continue;
      const double z_other = ElementOf(logits, other, 0);
      // The negative's logit over the positive's.
      const double over = positive ? z_other - z : z - z_other;
      const double e = std::exp(-std::fabs(over));
      const double share = over >= 0 ? 1.0 / (1.0 + e) : e / (1.0 + e);
      if (positive) {
        loss += (over < 0.0 ? 0.0 : over) + std::log1p(e);
        slope -= share;
      } else {
        slope += share * (weights == nullptr ? 1.0 : weights[other]);
      }
    }
    if (positive && weights != nullptr) {
      loss *= weights[row];
      slope *= weights[row];
    }
    const double scale = negatives > 0 ? 1.0 / negatives : 0.0;
    losses[row] = static_cast<float>(positive ? loss * scale : 0.0);
    ElementOf(gradient, row, 0) = static_cast<float>(slope * scale);
  }
};

// scores[i] = the inner product of the two halves of row i of x.
struct InnerProductRows {
  ConstMatrix x;  // [n, 2 * dim]
  float* scores = nullptr;
  Matrix Over() const { return {nullptr, x.rows, x.cols, x.cols}; }

  HDPS_ROW_TASK void operator()(size_t row) const {
    const float* const u = x.data + row * x.stride;
    const float* const v = u + x.cols / 2;
    float sum = 0.0f;
    for (size_t d = 0; d < x.cols / 2; ++d) sum += u[d] * v[d];
    scores[row] = sum;
  }
};

// Softmax over the items of the batch, corrected by their frequencies in it (Yi et al. 2019, eq. 3
// and 4): example first + i should choose its own item, with the logits
//   s[j] = products[i, j] - log_frequency[j],
// without other examples j of the same item. loss = w (log(sum of exp(s)) - s[own]), where w is the
// example's weight times its label; products become the gradient of the loss.
struct SampledSoftmaxRows {
  size_t first = 0;                      // Row 0 of `products` is example `first` of n.
  const float* counts = nullptr;         // [n]: w
  const float* items = nullptr;          // [n]: equal numbers mean the same item.
  const float* log_frequency = nullptr;  // [n]
  Matrix products;                       // [rows, n]: user row times each item.
  float* losses = nullptr;               // [rows]
  Matrix Over() const { return products; }

  HDPS_ROW_TASK bool Counts(size_t own, size_t j) const {
    return j == own || items[j] != items[own];
  }
  HDPS_ROW_TASK void operator()(size_t row) const {
    float* const s = products.data + row * products.stride;
    const size_t own = first + row;
    double top = static_cast<double>(s[own]) - static_cast<double>(log_frequency[own]);
    for (size_t j = 0; j < products.cols; ++j) {
      const double logit = static_cast<double>(s[j]) - static_cast<double>(log_frequency[j]);
      if (Counts(own, j) && logit > top) top = logit;
    }
    double total = 0, of_own = 0;
    for (size_t j = 0; j < products.cols; ++j) {
      const double logit = static_cast<double>(s[j]) - static_cast<double>(log_frequency[j]);
      if (j == own) of_own = logit;
      if (Counts(own, j)) total += std::exp(logit - top);
    }
    const double count = counts[own];
    losses[row] = static_cast<float>(count * (std::log(total) + top - of_own));
    for (size_t j = 0; j < products.cols; ++j) {
      const double logit = static_cast<double>(s[j]) - static_cast<double>(log_frequency[j]);
      const double share = Counts(own, j) ? std::exp(logit - top) / total : 0.0;
      s[j] = static_cast<float>(count * (share - (j == own ? 1.0 : 0.0)));
    }
  }
};

}  // namespace hdps
