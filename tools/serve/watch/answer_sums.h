// Sums over answers, from which means and shares and their errors follow.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "tools/serve/requests/score_request.h"

namespace hdps {

// A mean over requests that have unlike many items: the mean prediction of rows, the share of keys
// that have no row.
//
// The rows of a request have a user in common, so they are no independent draws, and their standard
// error would be too small if it counted them one by one. Requests are taken as the draws: this is
// the ratio estimator of cluster sampling (Cochran, Sampling Techniques, 3rd edition, section 6.3
// and equation 6.13 without the finite population).
struct RatioSums {
  double value = 0, items = 0;                                    // Sums of v and n over requests.
  double value_square = 0, value_by_items = 0, items_square = 0;  // Sums of v^2, v n, n^2.

  void Add(double v, double n);
  double Mean() const { return items > 0 ? value / items : 0; }
  // Returns the square of the standard error of Mean(): the sum of (v - Mean() n)^2 over the square
  // of `items`.
  double ErrorSquare() const;
};

// What a number of answers add up to.
struct AnswerTotals {
  double requests = 0, rows = 0;
  RatioSums prediction;            // Of rows.
  double prediction_square = 0;    // Sum over rows, for Deviation().
  std::vector<RatioSums> unknown;  // [sparse features]: keys without a row, of keys.

  // Returns the standard deviation of the predictions of rows.
  double Deviation() const;
};

// Adds answers up. A prediction is the first number of a row: of several tasks that of the first,
// under softmax the probability of class 0. Rows whose prediction is not finite are left out.
//
// Invariant: no call waits. A total that is read while answers are added may have part of one.
//
// Safe to call from any thread.
class AnswerSums {
 public:
  // `tasks`: as for PredictionsOf().
  AnswerSums(size_t num_features, size_t tasks);

  // Adds an answer that has predictions; of another one its keys.
  void Add(const ScoreRequest& request, const ScoreAnswer& answer);
  AnswerTotals Read() const;
  // Returns the totals and begins anew. A window is no difference of two totals, because a single
  // very large prediction would take all digits of those that come after it.
  AnswerTotals Take();

 private:
  // The numbers of RatioSums in their order.
  using Ratio = std::array<std::atomic<double>, 5>;
  static void AddTo(double v, double n, Ratio* ratio);
  // Reads all numbers by a function of an atomic one.
  template <typename Sums, typename ReadOne>
  static AnswerTotals TotalsOf(Sums& sums, const ReadOne& read);

  std::atomic<double> requests_ = 0, rows_ = 0, prediction_square_ = 0;
  Ratio prediction_ = {};
  const size_t num_features_, tasks_;
  const std::unique_ptr<Ratio[]> unknown_;  // [num_features_]
};

// Returns the columns of an answer that are its predictions, in the order of the tasks; none if it
// was not asked for them. `tasks`: number of columns of predictions; each other output has one
// column, or two of top_k.
std::vector<const OutputColumn*> PredictionsOf(const ScoreRequest& request,
                                               const ScoreAnswer& answer, size_t tasks);

}  // namespace hdps
