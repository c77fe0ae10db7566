// Update rules over plain rows: how a gradient changes weights and state.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "common/base/ids.h"
#include "common/job/table_spec.h"

namespace hdps {

const char* OptimizerName(OptimizerKind kind);  // "sgd", "lazy_adam", ...: as in the job file.

// Floats of optimizer state that stand behind the `dim` weights of a row.
uint32_t StateFloats(const OptimizerSpec& spec, uint32_t dim);

// The state of a row that has never been updated.
void InitState(const OptimizerSpec& spec, uint32_t dim, std::span<float> state);

// One update of one row: weights[dim], state[StateFloats], gradient[dim] already scaled.
// `step` is the number of the update as the workers count it, from 1; lazy Adam takes its bias
// correction from it, while Adam and AdamW count the updates of the row. Not for LAMB.
void UpdateRow(const OptimizerSpec& spec, int64_t step, std::span<const float> gradient,
               std::span<float> weights, std::span<float> state);

// LAMB (You et al. 2020, algorithm 2) for one whole tensor given as its chunks in order; the trust
// ratio is taken over all of them.
struct ChunkUpdate {
  std::span<const float> gradient;
  std::span<float> weights;
  std::span<float> state;
};
void UpdateLambTensor(const OptimizerSpec& spec, std::span<const ChunkUpdate> chunks);

}  // namespace hdps
