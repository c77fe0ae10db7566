// Tests every optimizer against its paper's formula, written again in double.
#include "embedding/memory/optimizer.h"

#include <cmath>
#include <limits>
#include <vector>

#include "common/platform/random.h"
#include "gtest/gtest.h"
#include "tests/embedding/row_optimizers.h"

namespace hdps {
namespace {

// A row in the papers' terms, with all state in double.
struct Reference {
  Reference(const OptimizerSpec& s, const std::vector<float>& first)
      : spec(s), w(first.begin(), first.end()), a(w.size(), 0), b(w.size(), 0) {
    if (s.record->kind == OptimizerKind::kAdagrad || s.record->kind == OptimizerKind::kFtrl) {
      b.assign(w.size(), s.initial_accumulator);
    }
    row = s.initial_accumulator;
  }

  void Adam(const std::vector<float>& g, int64_t t, double decay) {
    for (size_t i = 0; i < w.size(); ++i) {
      a[i] = spec.beta1 * a[i] + (1.0 - spec.beta1) * g[i];
      b[i] = spec.beta2 * b[i] + (1.0 - spec.beta2) * g[i] * g[i];
      const double m = a[i] / (1 - std::pow(double{spec.beta1}, t));
      const double v = b[i] / (1 - std::pow(double{spec.beta2}, t));
      w[i] -= spec.learning_rate * (m / (std::sqrt(v) + spec.epsilon) + decay * w[i]);
    }
  }
  void Ftrl(const std::vector<float>& g) {
    const double lr = spec.learning_rate;
    for (size_t i = 0; i < w.size(); ++i) {
      const double sigma = (std::sqrt(b[i] + double{g[i]} * g[i]) - std::sqrt(b[i])) / lr;
      a[i] += g[i] - sigma * w[i];
      b[i] += double{g[i]} * g[i];
      const double sign = a[i] > 0 ? 1 : -1;
      w[i] = std::abs(a[i]) <= spec.l1
                 ? 0
                 : -(a[i] - sign * spec.l1) / (std::sqrt(b[i]) / lr + spec.l2);
    }
  }
  void Update(const std::vector<float>& g, int64_t step) {
    ++updates;
    const double lr = spec.learning_rate;
    switch (spec.record->kind) {
      case OptimizerKind::kAdam:
        return Adam(g, updates, 0);
      case OptimizerKind::kAdamW:
        return Adam(g, updates, spec.weight_decay);
      case OptimizerKind::kLazyAdam:
        return Adam(g, step, 0);
      case OptimizerKind::kFtrl:
        return Ftrl(g);
      case OptimizerKind::kRowwiseAdagrad: {
        double squares = 0;
        for (const float x : g) squares += double{x} * x;
        row += squares / static_cast<double>(g.size());
        for (size_t i = 0; i < w.size(); ++i) w[i] -= lr * g[i] / (std::sqrt(row) + spec.epsilon);
        return;
      }
      case OptimizerKind::kSgd:
        for (size_t i = 0; i < w.size(); ++i) w[i] -= lr * g[i];
        return;
      case OptimizerKind::kMomentum:
        for (size_t i = 0; i < w.size(); ++i) {
          a[i] = spec.momentum * a[i] + g[i];
          w[i] -= lr * a[i];
        }
        return;
      case OptimizerKind::kAdagrad:
        for (size_t i = 0; i < w.size(); ++i) {
          b[i] += double{g[i]} * g[i];
          w[i] -= lr * g[i] / (std::sqrt(b[i]) + spec.epsilon);
        }
        return;
      case OptimizerKind::kRmsProp:
        for (size_t i = 0; i < w.size(); ++i) {
          b[i] = spec.rho * b[i] + (1.0 - spec.rho) * g[i] * g[i];
          w[i] -= lr * g[i] / (std::sqrt(b[i]) + spec.epsilon);
        }
        return;
      case OptimizerKind::kAdadelta:
        for (size_t i = 0; i < w.size(); ++i) {
          a[i] = spec.rho * a[i] + (1.0 - spec.rho) * g[i] * g[i];
          const double move =
              std::sqrt(b[i] + spec.epsilon) / std::sqrt(a[i] + spec.epsilon) * g[i];
          b[i] = spec.rho * b[i] + (1.0 - spec.rho) * move * move;
          w[i] -= lr * move;
        }
        return;
      default:
        FAIL() << OptimizerName(spec) << " has no formula here";
    }
  }

  OptimizerSpec spec;
  std::vector<double> w, a, b;
  double row = 0;
  int64_t updates = 0;
};

OptimizerSpec SpecOf(OptimizerKind kind) {
  OptimizerSpec spec = DefaultsOf(kind);
  spec.learning_rate = 0.05f;
  spec.l1 = 0.02f;
  spec.l2 = 0.3f;
  spec.weight_decay = 0.1f;
  return spec;
}

std::vector<float> RandomFloats(Random& random, size_t n, double scale) {
  std::vector<float> values(n);
  for (float& value : values) value = static_cast<float>(random.Normal() * scale);
  return values;
}

TEST(Optimizer, FollowsTheFormulas) {
  Random random(7);
  for (const OptimizerKind kind : RowOptimizers()) {
    for (const uint32_t dim : {1u, 3u, 16u, 33u}) {
      const OptimizerSpec spec = SpecOf(kind);
      std::vector<float> weights = RandomFloats(random, dim, 0.1);
      std::vector<float> state(StateFloats(spec, dim));
      InitState(spec, dim, state);
      Reference reference(spec, weights);
      // A row that is not in every step distinguishes lazy Adam from Adam.
      for (int64_t step = 1; step <= 300; step += 1 + static_cast<int64_t>(random.Below(5))) {
        const std::vector<float> gradient = RandomFloats(random, dim, 0.3);
        UpdateRow(spec, step, gradient, weights, state);
        reference.Update(gradient, step);
      }
      for (uint32_t i = 0; i < dim; ++i) {
        EXPECT_NEAR(weights[i], reference.w[i], 2e-5 + 1e-4 * std::abs(reference.w[i]))
            << OptimizerName(kind) << " dim " << dim << " at " << i;
      }
    }
  }
}

TEST(Optimizer, FirstStepsByHand) {
  std::vector<float> w = {1.0f}, g = {0.5f};
  OptimizerSpec spec;
  spec.learning_rate = 0.25f;
  spec.record = &RecordOf(OptimizerKind::kSgd);
  UpdateRow(spec, 1, g, w, {});
  EXPECT_EQ(w[0], 0.875f);

  // Adam's first step is the learning rate, whatever the size of the gradient.
  spec.record = &RecordOf(OptimizerKind::kAdam);
  std::vector<float> state(3);
  w = {1.0f};
  g = {1e-3f};
  UpdateRow(spec, 999, g, w, state);
  EXPECT_NEAR(w[0], 0.75f, 1e-4);
  EXPECT_EQ(state[2], 1.0f);  // The count is of this row's updates, not of steps.
}

// The mean of squares is a tenth of the first square, so the first step is lr sqrt(10), whatever
// the size of the gradient. The error is at most epsilon over the smallest root, which is the root
// of a tenth of the smallest square, and the rounding of a few float operations.
TEST(Optimizer, RmsPropTakesTheSizeOutOfGradients) {
  const OptimizerSpec spec = SpecOf(OptimizerKind::kRmsProp);
  const double step = spec.learning_rate * std::sqrt(10.0);
  for (const float size : {1e-3f, 1.0f, 1e3f}) {
    std::vector<float> w = {1.0f}, g = {-size}, state(1);
    UpdateRow(spec, 1, g, w, state);
    const double lacks = step * spec.epsilon / (size * std::sqrt(0.1));
    EXPECT_NEAR(w[0], 1 + step, lacks + 8 * std::numeric_limits<float>::epsilon()) << size;
  }
}

// Needs no learning rate: its first step has the size of the root of epsilon.
TEST(Optimizer, AdadeltaFindsItsOwnRate) {
  const OptimizerSpec spec = DefaultsOf(OptimizerKind::kAdadelta);
  EXPECT_EQ(spec.learning_rate, 1.0f);
  std::vector<float> w = {0.0f}, g = {0.5f}, state(2);
  UpdateRow(spec, 1, g, w, state);
  const double mean = 0.05 * 0.25, step = std::sqrt(1e-6 / (mean + 1e-6)) * 0.5;
  EXPECT_NEAR(w[0], -step, 1e-5 * step);
  EXPECT_NEAR(state[0], mean, 1e-5 * mean);
  EXPECT_NEAR(state[1], 0.05 * step * step, 1e-5 * 0.05 * step * step);
}

TEST(Optimizer, FtrlKeepsSmallWeightsAtZero) {
  OptimizerSpec spec = SpecOf(OptimizerKind::kFtrl);
  spec.l1 = 100;
  std::vector<float> w = {0.5f}, g = {0.1f}, state(2);
  InitState(spec, 1, state);
  UpdateRow(spec, 1, g, w, state);
  EXPECT_EQ(w[0], 0.0f);
  EXPECT_FALSE(std::signbit(w[0]));
}

TEST(Optimizer, AdamCountsToItsLimitAndStays) {
  OptimizerSpec spec = SpecOf(OptimizerKind::kAdam);
  std::vector<float> w = {0.0f}, g = {1.0f}, state = {0, 0, 16777215.0f};
  UpdateRow(spec, 1, g, w, state);
  EXPECT_EQ(state[2], 16777216.0f);
  UpdateRow(spec, 1, g, w, state);
  EXPECT_EQ(state[2], 16777216.0f);
  EXPECT_TRUE(std::isfinite(w[0]));
}

// Computes LAMB, You et al. 2020, algorithm 2, over a tensor in one piece.
std::vector<double> LambReference(const OptimizerSpec& spec, std::vector<double> w,
                                  const std::vector<std::vector<float>>& gradients) {
  std::vector<double> m(w.size(), 0), v(w.size(), 0), u(w.size());
  for (size_t t = 1; t <= gradients.size(); ++t) {
    double w2 = 0, u2 = 0;
    for (size_t i = 0; i < w.size(); ++i) {
      const double g = gradients[t - 1][i];
      m[i] = spec.beta1 * m[i] + (1.0 - spec.beta1) * g;
      v[i] = spec.beta2 * v[i] + (1.0 - spec.beta2) * g * g;
      const double time = static_cast<double>(t);
      u[i] = m[i] / (1 - std::pow(spec.beta1, time)) /
                 (std::sqrt(v[i] / (1 - std::pow(spec.beta2, time))) + spec.epsilon) +
             spec.weight_decay * w[i];
      w2 += w[i] * w[i];
      u2 += u[i] * u[i];
    }
    const double trust = w2 > 0 && u2 > 0 ? std::sqrt(w2) / std::sqrt(u2) : 1;
    for (size_t i = 0; i < w.size(); ++i) w[i] -= spec.learning_rate * trust * u[i];
  }
  return w;
}

TEST(Optimizer, LambTakesItsRatioOverTheWholeTensor) {
  Random random(3);
  const OptimizerSpec spec = SpecOf(OptimizerKind::kLamb);
  constexpr uint32_t kDim = 8, kChunks = 3;
  std::vector<float> weights = RandomFloats(random, kDim * kChunks, 0.5);
  std::vector<float> state(kChunks * StateFloats(spec, kDim));
  const size_t state_floats = StateFloats(spec, kDim);
  std::vector<double> expected(weights.begin(), weights.end());
  std::vector<std::vector<float>> gradients;
  for (int step = 0; step < 50; ++step) {
    gradients.push_back(RandomFloats(random, kDim * kChunks, 0.2));
    std::vector<ChunkUpdate> chunks;
    for (size_t c = 0; c < kChunks; ++c) {
      chunks.push_back({std::span(gradients.back()).subspan(c * kDim, kDim),
                        std::span(weights).subspan(c * kDim, kDim),
                        std::span(state).subspan(c * state_floats, state_floats)});
    }
    UpdateTensor(spec, chunks);
  }
  expected = LambReference(spec, expected, gradients);
  for (size_t i = 0; i < weights.size(); ++i) EXPECT_NEAR(weights[i], expected[i], 2e-4) << i;
}

TEST(Optimizer, LambMovesATensorOfZeros) {
  const OptimizerSpec spec = SpecOf(OptimizerKind::kLamb);
  std::vector<float> w(4, 0.0f), g = {1, -1, 2, 0}, state(StateFloats(spec, 4));
  const std::vector<ChunkUpdate> chunks = {{g, w, state}};
  UpdateTensor(spec, chunks);
  EXPECT_NEAR(w[0], -spec.learning_rate, 1e-6);
  EXPECT_NEAR(w[1], spec.learning_rate, 1e-6);
  EXPECT_EQ(w[3], 0.0f);
}

}  // namespace
}  // namespace hdps
