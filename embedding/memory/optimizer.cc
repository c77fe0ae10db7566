// The update rules row by row, and LAMB over whole tensors.
#include "embedding/memory/optimizer.h"

#include <glog/logging.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "embedding/memory/row_rules.h"

namespace hdps {
namespace {

// Adam's direction of one chunk with decay added, into `direction`.
void LambDirection(const OptimizerSpec& spec, BiasCorrection correction, const ChunkUpdate& chunk,
                   float* direction) {
  const size_t dim = chunk.weights.size();
  const float beta1 = spec.beta1, beta2 = spec.beta2;
  float* m = chunk.state.data();
  float* v = m + dim;
  for (size_t i = 0; i < dim; ++i) {
    const float g = chunk.gradient[i];
    m[i] = beta1 * m[i] + (1 - beta1) * g;
    v[i] = beta2 * v[i] + (1 - beta2) * (g * g);
    direction[i] = m[i] * correction.first / (std::sqrt(v[i] * correction.second) + spec.epsilon) +
                   spec.weight_decay * chunk.weights[i];
  }
}

double SquaredNorm(std::span<const float> values) {
  double sum = 0;
  for (const float value : values) sum += double{value} * value;
  return sum;
}

}  // namespace

const char* OptimizerName(OptimizerKind kind) {
  switch (kind) {
    case OptimizerKind::kSgd:
      return "sgd";
    case OptimizerKind::kMomentum:
      return "momentum";
    case OptimizerKind::kAdagrad:
      return "adagrad";
    case OptimizerKind::kRowwiseAdagrad:
      return "rowwise_adagrad";
    case OptimizerKind::kAdam:
      return "adam";
    case OptimizerKind::kLazyAdam:
      return "lazy_adam";
    case OptimizerKind::kAdamW:
      return "adamw";
    case OptimizerKind::kFtrl:
      return "ftrl";
    case OptimizerKind::kLamb:
      return "lamb";
  }
  return "unknown";
}

uint32_t StateFloats(const OptimizerSpec& spec, uint32_t dim) {
  return static_cast<uint32_t>(StateFloatsOf(spec.kind, dim));
}

void InitState(const OptimizerSpec& spec, uint32_t dim, std::span<float> state) {
  DCHECK_EQ(state.size(), StateFloats(spec, dim));
  std::fill(state.begin(), state.end(), 0.0f);
  if (spec.kind == OptimizerKind::kAdagrad || spec.kind == OptimizerKind::kRowwiseAdagrad) {
    std::fill(state.begin(), state.end(), spec.initial_accumulator);
  } else if (spec.kind == OptimizerKind::kFtrl) {
    std::fill(state.begin() + dim, state.end(), spec.initial_accumulator);
  }
}

void UpdateRow(const OptimizerSpec& spec, int64_t step, std::span<const float> gradient,
               std::span<float> weights, std::span<float> state) {
  Corrections corrections(spec);
  const auto update = [&]<OptimizerKind kRule>() {
    const bool lazy = kRule == OptimizerKind::kLazyAdam;
    UpdateRowBy<kRule>(spec, lazy ? CorrectionAt(spec, step) : BiasCorrection(), corrections,
                       weights.size(), gradient.data(), GradientScale(), weights.data(),
                       state.data());
  };
  switch (spec.kind) {
    case OptimizerKind::kSgd:
      return update.template operator()<OptimizerKind::kSgd>();
    case OptimizerKind::kMomentum:
      return update.template operator()<OptimizerKind::kMomentum>();
    case OptimizerKind::kAdagrad:
      return update.template operator()<OptimizerKind::kAdagrad>();
    case OptimizerKind::kRowwiseAdagrad:
      return update.template operator()<OptimizerKind::kRowwiseAdagrad>();
    case OptimizerKind::kAdam:
      return update.template operator()<OptimizerKind::kAdam>();
    case OptimizerKind::kLazyAdam:
      return update.template operator()<OptimizerKind::kLazyAdam>();
    case OptimizerKind::kAdamW:
      return update.template operator()<OptimizerKind::kAdamW>();
    case OptimizerKind::kFtrl:
      return update.template operator()<OptimizerKind::kFtrl>();
    case OptimizerKind::kLamb:
      break;
  }
  LOG(FATAL) << "LAMB changes whole tensors, not rows";
}

void UpdateLambTensor(const OptimizerSpec& spec, std::span<const ChunkUpdate> chunks) {
  size_t floats = 0;
  for (const ChunkUpdate& chunk : chunks) floats += chunk.weights.size();
  std::vector<float> direction(floats);
  double weights_squared = 0, direction_squared = 0;
  float* at = direction.data();
  for (const ChunkUpdate& chunk : chunks) {
    const int64_t t = CountUpdate(&chunk.state.back());
    LambDirection(spec, CorrectionAt(spec, t), chunk, at);
    weights_squared += SquaredNorm(chunk.weights);
    direction_squared += SquaredNorm({at, chunk.weights.size()});
    at += chunk.weights.size();
  }
  // A tensor that is all zeros, or is not to move, has no direction to trust.
  const bool trusted = weights_squared > 0 && direction_squared > 0;
  const double trust = trusted ? std::sqrt(weights_squared) / std::sqrt(direction_squared) : 1;
  const float rate = static_cast<float>(spec.learning_rate * trust);
  at = direction.data();
  for (const ChunkUpdate& chunk : chunks) {
    for (float& weight : chunk.weights) weight -= rate * *at++;
  }
}

}  // namespace hdps
