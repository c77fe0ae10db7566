// One row or tensor updated by the optimizer of its table, and what its state begins with.
#pragma once

#include <cstdint>
#include <span>

namespace hdps {

struct OptimizerSpec;

// Floats of optimizer state that stand behind the `dim` weights of a row.
uint32_t StateFloats(const OptimizerSpec& spec, uint32_t dim);

// The state of a row that has never been updated.
void InitState(const OptimizerSpec& spec, uint32_t dim, std::span<float> state);

// One update of one row, which specifies what the loops over many rows do: weights[dim],
// state[StateFloats], gradient[dim] already scaled. `step` is the number of the update as the
// workers count it, from 1; lazy Adam takes its bias correction from it, while Adam and AdamW count
// the updates of the row. Not for optimizers of whole tensors.
void UpdateRow(const OptimizerSpec& spec, int64_t step, std::span<const float> gradient,
               std::span<float> weights, std::span<float> state);

// One update of one whole tensor, given as its chunks in order, by an optimizer that needs it
// whole.
struct ChunkUpdate {
  std::span<const float> gradient;
  std::span<float> weights;
  std::span<float> state;
};
void UpdateTensor(const OptimizerSpec& spec, std::span<const ChunkUpdate> chunks);

// The same in two halves, for who has only some chunks of a tensor: what its rate comes from, of a
// chunk; those of a tensor's chunks are added in their order.
struct TensorSums {
  double weights = 0, direction = 0;  // Of squares.
};
// Changes the state; `direction` is as long as the chunk.
TensorSums FindChunkDirection(const OptimizerSpec& spec, const ChunkUpdate& chunk,
                              std::span<float> direction);
void DescendChunk(const OptimizerSpec& spec, const TensorSums& of_tensor,
                  std::span<const float> direction, std::span<float> weights);

}  // namespace hdps
