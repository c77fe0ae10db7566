// The update rules, each as its paper writes it, over plain spans of floats.
#include "embedding/optimizer.h"

#include <glog/logging.h>

#include <algorithm>
#include <cmath>
#include <vector>

namespace hdps {
namespace {

// A row counts its updates in a float, exactly up to here; there the bias correction is long 1.
constexpr float kUpdatesCountedMax = 16777216.0f;  // 2^24

// base^exponent by squaring, so that it has the same bits on every machine (pow() has not).
double Power(double base, int64_t exponent) {
  double result = 1;
  for (; exponent > 0; exponent >>= 1) {
    if (exponent & 1) result *= base;
    base *= base;
  }
  return result;
}

// 1 / (1 - beta^t) for both moments of Adam (Kingma & Ba 2015, algorithm 1).
struct BiasCorrection {
  float first, second;
};
BiasCorrection CorrectionAt(const OptimizerSpec& spec, int64_t t) {
  return {static_cast<float>(1.0 / (1.0 - Power(spec.beta1, t))),
          static_cast<float>(1.0 / (1.0 - Power(spec.beta2, t)))};
}

// Counts one more update of the row in the last float of its state; the count from 1.
int64_t CountUpdate(float* count) {
  *count = std::min(*count + 1.0f, kUpdatesCountedMax);
  return static_cast<int64_t>(*count);
}

// w -= lr g
void Sgd(const OptimizerSpec& spec, size_t dim, const float* __restrict g, float* __restrict w) {
  for (size_t i = 0; i < dim; ++i) w[i] -= spec.learning_rate * g[i];
}

// v = mu v + g;  w -= lr v   (Polyak 1964)
void Momentum(const OptimizerSpec& spec, size_t dim, const float* __restrict g, float* __restrict w,
              float* __restrict v) {
  for (size_t i = 0; i < dim; ++i) {
    v[i] = spec.momentum * v[i] + g[i];
    w[i] -= spec.learning_rate * v[i];
  }
}

// h += g^2;  w -= lr g / (sqrt(h) + eps)   (Duchi et al. 2011)
void Adagrad(const OptimizerSpec& spec, size_t dim, const float* __restrict g, float* __restrict w,
             float* __restrict h) {
  for (size_t i = 0; i < dim; ++i) {
    h[i] += g[i] * g[i];
    w[i] -= spec.learning_rate * g[i] / (std::sqrt(h[i]) + spec.epsilon);
  }
}

// h += mean(g^2) over the row, one h a row;  w -= lr g / (sqrt(h) + eps)
void RowwiseAdagrad(const OptimizerSpec& spec, size_t dim, const float* __restrict g,
                    float* __restrict w, float* __restrict h) {
  float squares = 0;
  for (size_t i = 0; i < dim; ++i) squares += g[i] * g[i];
  *h += squares / static_cast<float>(dim);
  const float rate = spec.learning_rate / (std::sqrt(*h) + spec.epsilon);
  for (size_t i = 0; i < dim; ++i) w[i] -= rate * g[i];
}

// m = b1 m + (1 - b1) g;  v = b2 v + (1 - b2) g^2
// w -= lr (m^ / (sqrt(v^) + eps) + decay w),  m^ and v^ corrected for their start at zero.
// Kingma & Ba 2015; decay as in Loshchilov & Hutter 2019, algorithm 2, 0 for plain Adam.
void Adam(const OptimizerSpec& spec, BiasCorrection correction, float decay, size_t dim,
          const float* __restrict g, float* __restrict w, float* __restrict m,
          float* __restrict v) {
  const float beta1 = spec.beta1, beta2 = spec.beta2;
  for (size_t i = 0; i < dim; ++i) {
    m[i] = beta1 * m[i] + (1 - beta1) * g[i];
    v[i] = beta2 * v[i] + (1 - beta2) * (g[i] * g[i]);
    const float direction =
        m[i] * correction.first / (std::sqrt(v[i] * correction.second) + spec.epsilon);
    w[i] -= spec.learning_rate * (direction + decay * w[i]);
  }
}

// s = (sqrt(n + g^2) - sqrt(n)) / lr;  z += g - s w;  n += g^2
// w = 0 where |z| <= l1, else -(z - sign(z) l1) / (sqrt(n) / lr + l2)
// FTRL-Proximal, per coordinate (McMahan et al. 2013, algorithm 1, beta = 0: the initial
// accumulator takes its place).
void Ftrl(const OptimizerSpec& spec, size_t dim, const float* __restrict g, float* __restrict w,
          float* __restrict z, float* __restrict n) {
  for (size_t i = 0; i < dim; ++i) {
    const float grown = n[i] + g[i] * g[i];
    const float root = std::sqrt(grown);
    z[i] += g[i] - (root - std::sqrt(n[i])) / spec.learning_rate * w[i];
    n[i] = grown;
    // No branch, so that the loop becomes vectors; w is 0 and not -0 where |z| <= l1.
    const float excess = std::abs(z[i]) - spec.l1;
    const float size = excess / (root / spec.learning_rate + spec.l2);
    const float moved = z[i] > 0 ? -size : size;
    w[i] = excess > 0 ? moved : 0.0f;
  }
}

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

double SumOfSquares(std::span<const float> values) {
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
  switch (spec.kind) {
    case OptimizerKind::kSgd:
      return 0;
    case OptimizerKind::kMomentum:
    case OptimizerKind::kAdagrad:
      return dim;
    case OptimizerKind::kRowwiseAdagrad:
      return 1;
    case OptimizerKind::kLazyAdam:
    case OptimizerKind::kFtrl:
      return 2 * dim;
    case OptimizerKind::kAdam:
    case OptimizerKind::kAdamW:
    case OptimizerKind::kLamb:
      return 2 * dim + 1;
  }
  LOG(FATAL) << "no rule " << static_cast<int>(spec.kind);
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
  const size_t dim = weights.size();
  const float* g = gradient.data();
  float* w = weights.data();
  float* s = state.data();
  switch (spec.kind) {
    case OptimizerKind::kSgd:
      return Sgd(spec, dim, g, w);
    case OptimizerKind::kMomentum:
      return Momentum(spec, dim, g, w, s);
    case OptimizerKind::kAdagrad:
      return Adagrad(spec, dim, g, w, s);
    case OptimizerKind::kRowwiseAdagrad:
      return RowwiseAdagrad(spec, dim, g, w, s);
    case OptimizerKind::kAdam:
      return Adam(spec, CorrectionAt(spec, CountUpdate(&s[2 * dim])), 0, dim, g, w, s, s + dim);
    case OptimizerKind::kLazyAdam:
      return Adam(spec, CorrectionAt(spec, step), 0, dim, g, w, s, s + dim);
    case OptimizerKind::kAdamW:
      return Adam(spec, CorrectionAt(spec, CountUpdate(&s[2 * dim])), spec.weight_decay, dim, g, w,
                  s, s + dim);
    case OptimizerKind::kFtrl:
      return Ftrl(spec, dim, g, w, s, s + dim);
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
    weights_squared += SumOfSquares(chunk.weights);
    direction_squared += SumOfSquares({at, chunk.weights.size()});
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
