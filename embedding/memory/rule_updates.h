// Updates and initial state of one row or tensor under one optimizer, compiled for each optimizer.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "common/job/optimizers/optimizer_rule.h"
#include "embedding/memory/optimizer.h"
#include "kernels/host/row_update.h"

namespace hdps {

struct OptimizerSettings;

template <typename Rule>
void InitStateBy(const OptimizerSettings& settings, size_t dim, std::span<float> state) {
  for (size_t array = 0; array < Rule::kStateArrays; ++array) {
    std::ranges::fill(state.subspan(array * dim, dim), Rule::InitialState(settings, array));
  }
  std::ranges::fill(state.subspan(Rule::kStateArrays * dim), Rule::InitialKept(settings));
}

template <typename Rule>
void UpdateRowBy(const OptimizerSettings& settings, int64_t step, std::span<const float> gradient,
                 std::span<float> weights, std::span<float> state) {
  RowFactors<Rule> factors(settings, step);
  UpdateOneRow<Rule>(settings, factors, weights.size(), gradient.data(), GradientScale(),
                     weights.data(), state.data());
}

inline double SquaredNorm(std::span<const float> values) {
  double sum = 0;
  for (const float value : values) sum += double{value} * value;
  return sum;
}

// Updates the state and fills `direction` with the chunk's part of the tensor's direction.
template <typename Rule>
void FindDirection(const OptimizerSettings& settings, const ChunkUpdate& chunk, float* direction) {
  const size_t dim = chunk.weights.size();
  const typename Rule::Factor factor =
      Rule::FactorAt(settings, CountUpdate(&chunk.state[Rule::kStateArrays * dim]));
  float* s0 = chunk.state.data();
  float* s1 = s0 + dim;
  for (size_t i = 0; i < dim; ++i) {
    direction[i] =
        Rule::Direction(settings, factor, chunk.gradient[i], chunk.weights[i], s0[i], s1[i]);
  }
}

template <typename Rule>
TensorSums FindChunkDirectionBy(const OptimizerSettings& settings, const ChunkUpdate& chunk,
                                std::span<float> direction) {
  FindDirection<Rule>(settings, chunk, direction.data());
  return {SquaredNorm(chunk.weights), SquaredNorm(direction)};
}

template <typename Rule>
void DescendChunkBy(const OptimizerSettings& settings, const TensorSums& of_tensor,
                    std::span<const float> direction, std::span<float> weights) {
  const float rate = Rule::Rate(settings, of_tensor.weights, of_tensor.direction);
  for (size_t i = 0; i < weights.size(); ++i) weights[i] -= rate * direction[i];
}

template <typename Rule>
void UpdateTensorBy(const OptimizerSettings& settings, std::span<const ChunkUpdate> chunks) {
  size_t floats = 0;
  for (const ChunkUpdate& chunk : chunks) floats += chunk.weights.size();
  std::vector<float> direction(floats);
  double weights_squared = 0, direction_squared = 0;
  float* at = direction.data();
  for (const ChunkUpdate& chunk : chunks) {
    FindDirection<Rule>(settings, chunk, at);
    weights_squared += SquaredNorm(chunk.weights);
    direction_squared += SquaredNorm({at, chunk.weights.size()});
    at += chunk.weights.size();
  }
  const float rate = Rule::Rate(settings, weights_squared, direction_squared);
  at = direction.data();
  for (const ChunkUpdate& chunk : chunks) {
    for (float& weight : chunk.weights) weight -= rate * *at++;
  }
}

}  // namespace hdps
