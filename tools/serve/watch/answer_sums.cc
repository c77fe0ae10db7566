// Adds up relaxed, number by number.
#include "tools/serve/watch/answer_sums.h"

#include <algorithm>
#include <cmath>

namespace hdps {
namespace {

constexpr auto kRelaxed = std::memory_order_relaxed;

}  // namespace

void RatioSums::Add(double v, double n) {
  value += v;
  items += n;
  value_square += v * v;
  value_by_items += v * n;
  items_square += n * n;
}

double RatioSums::ErrorSquare() const {
  if (items <= 0) return 0;
  const double mean = Mean();
  const double squares = value_square - 2 * mean * value_by_items + mean * mean * items_square;
  return std::max(squares, 0.0) / (items * items);
}

double AnswerTotals::Deviation() const {
  if (rows <= 0) return 0;
  const double mean = prediction.Mean();
  return std::sqrt(std::max(prediction_square / rows - mean * mean, 0.0));
}

AnswerSums::AnswerSums(size_t num_features, size_t tasks)
    : num_features_(num_features),
      tasks_(tasks),
      unknown_(std::make_unique<Ratio[]>(num_features)) {}

void AnswerSums::Add(const ScoreRequest& request, const ScoreAnswer& answer) {
  for (size_t f = 0; f < std::min(num_features_, answer.keys.size()); ++f) {
    AddTo(static_cast<double>(answer.unknown_keys[f]), static_cast<double>(answer.keys[f]),
          &unknown_[f]);
  }
  const std::vector<const OutputColumn*> predictions = PredictionsOf(request, answer, tasks_);
  if (predictions.empty() || answer.rows == 0) return;
  const OutputColumn& first = *predictions[0];
  double sum = 0, squares = 0, rows = 0;
  for (size_t at = 0; at < first.numbers.size(); at += first.width) {
    const auto prediction = static_cast<double>(first.numbers[at]);
    if (!std::isfinite(prediction)) continue;
    sum += prediction;
    squares += prediction * prediction;
    ++rows;
  }
  if (rows == 0) return;
  requests_.fetch_add(1, kRelaxed);
  rows_.fetch_add(rows, kRelaxed);
  prediction_square_.fetch_add(squares, kRelaxed);
  AddTo(sum, rows, &prediction_);
}

void AnswerSums::AddTo(double v, double n, Ratio* ratio) {
  RatioSums one;
  one.Add(v, n);
  const double numbers[] = {one.value, one.items, one.value_square, one.value_by_items,
                            one.items_square};
  for (size_t i = 0; i < ratio->size(); ++i) {
    if (numbers[i] != 0) (*ratio)[i].fetch_add(numbers[i], kRelaxed);
  }
}

template <typename Sums, typename ReadOne>
AnswerTotals AnswerSums::TotalsOf(Sums& sums, const ReadOne& read) {
  const auto ratio = [&read](auto& of) -> RatioSums {
    return {read(of[0]), read(of[1]), read(of[2]), read(of[3]), read(of[4])};
  };
  AnswerTotals totals = {read(sums.requests_),
                         read(sums.rows_),
                         ratio(sums.prediction_),
                         read(sums.prediction_square_),
                         {}};
  for (size_t f = 0; f < sums.num_features_; ++f) totals.unknown.push_back(ratio(sums.unknown_[f]));
  return totals;
}

AnswerTotals AnswerSums::Read() const {
  return TotalsOf(*this, [](const std::atomic<double>& one) { return one.load(kRelaxed); });
}

AnswerTotals AnswerSums::Take() {
  return TotalsOf(*this, [](std::atomic<double>& one) { return one.exchange(0, kRelaxed); });
}

std::vector<const OutputColumn*> PredictionsOf(const ScoreRequest& request,
                                               const ScoreAnswer& answer, size_t tasks) {
  size_t first = 0;
  for (const ScoreOutput output : request.outputs) {
    if (output == ScoreOutput::kPrediction) break;
    first += output == ScoreOutput::kTopK ? 2 : 1;
  }
  std::vector<const OutputColumn*> columns;
  const bool asked =
      request.outputs.empty() ||
      std::ranges::find(request.outputs, ScoreOutput::kPrediction) != request.outputs.end();
  for (size_t c = first; asked && c < std::min(first + tasks, answer.outputs.size()); ++c) {
    columns.push_back(&answer.outputs[c]);
  }
  return columns;
}

}  // namespace hdps
