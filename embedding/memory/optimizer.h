// Updates one row or tensor by the optimizer of its table, and initializes its state.
#pragma once

#include <cstdint>
#include <span>

namespace hdps {

struct OptimizerSpec;

// Returns the number of floats of optimizer state behind the `dim` weights of a row.
uint32_t StateFloats(const OptimizerSpec& spec, uint32_t dim);

// Fills the state of a row that has never been updated.
void InitState(const OptimizerSpec& spec, uint32_t dim, std::span<float> state);

// Updates one row; the loops over many rows must agree with it. Shapes: weights[dim],
// state[StateFloats], gradient[dim] already scaled. `step` is the number of the update as the
// workers count it, from 1: lazy Adam takes its bias correction from it, while Adam and AdamW count
// the updates of the row. Not for optimizers of whole tensors.
void UpdateRow(const OptimizerSpec& spec, int64_t step, std::span<const float> gradient,
               std::span<float> weights, std::span<float> state);

// A chunk of a tensor. UpdateTensor updates one whole tensor, given as its chunks in order, by an
// optimizer that needs it whole.
struct ChunkUpdate {
  std::span<const float> gradient;
  std::span<float> weights;
  std::span<float> state;
};
void UpdateTensor(const OptimizerSpec& spec, std::span<const ChunkUpdate> chunks);

// UpdateTensor in two halves, for a caller that has only some chunks of a tensor. The sums of all
// chunks of the tensor, added in their order, give its learning rate.
struct TensorSums {
  double weights = 0, direction = 0;  // Sums of squares.
};
// Updates the state and fills `direction`, which is as long as the chunk.
TensorSums FindChunkDirection(const OptimizerSpec& spec, const ChunkUpdate& chunk,
                              std::span<float> direction);
void DescendChunk(const OptimizerSpec& spec, const TensorSums& of_tensor,
                  std::span<const float> direction, std::span<float> weights);

}  // namespace hdps
