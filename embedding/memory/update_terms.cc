// Applies penalties and clipping, element by element.
#include "embedding/memory/update_terms.h"

#include <algorithm>
#include <cmath>

#include "common/job/optimizers/optimizer_settings.h"
#include "common/job/spec/table_spec.h"
#include "embedding/memory/averages.h"

namespace hdps {

GradientTerms::GradientTerms(const TableSpec& table, const UpdateTerms& terms)
    : l1_(table.loss_l1),
      l2_(table.loss_l2),
      shrink_(terms.shrink),
      clip_value_(terms.clip_value) {}

void GradientTerms::AddPenalties(std::span<const float> weights, std::span<float> gradient) const {
  if (!penalizes()) return;
  for (size_t i = 0; i < gradient.size(); ++i) {
    const float w = weights[i];
    const float sign = w > 0 ? 1.0f : w < 0 ? -1.0f : 0.0f;
    gradient[i] += l2_ * w + l1_ * sign;
  }
}

void GradientTerms::Clip(std::span<float> gradient) const {
  if (shrink_ != 1) {
    for (float& value : gradient) value *= shrink_;
  }
  if (clip_value_ > 0) {
    for (float& value : gradient) value = std::clamp(value, -clip_value_, clip_value_);
  }
}

void FinishGradients(const TableSpec& table, const GradientTerms& terms, float scale,
                     std::span<const Key> keys, std::span<const float> weights,
                     std::span<float> gradients) {
  const size_t dim = table.slice_dim();
  for (size_t k = 0; k < keys.size(); ++k) {
    const std::span<float> gradient = gradients.subspan(k * dim, dim);
    for (float& value : gradient) value *= scale;
    if (table.dense && IsAveraged(table, keys[k])) continue;
    if (terms.penalizes()) terms.AddPenalties(weights.subspan(k * dim, dim), gradient);
    terms.Clip(gradient);
  }
}

SquareSum SquaresOf(const TableSpec& table, std::span<const Key> keys,
                    std::span<const float> gradients) {
  SquareSum squares;
  for (size_t k = 0; k < keys.size(); ++k) {
    if (table.dense && IsAveraged(table, keys[k])) continue;
    squares.Add(SquaresOf(gradients.subspan(k * table.slice_dim(), table.slice_dim())));
  }
  return squares;
}

float ShrinkTo(double most, const SquareSum& squares) {
  constexpr double kEpsilon = 1e-6;
  if (most <= 0) return 1;
  return static_cast<float>(std::min(most / (std::sqrt(squares.value()) + kEpsilon), 1.0));
}

}  // namespace hdps
