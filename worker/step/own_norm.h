// Clipping by the norm of one worker's gradients, where there is no step of all workers.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "common/base/ids.h"

namespace hdps {

struct Job;

// Sums over the worker's examples, as they will be pushed.
struct OwnGradients {
  std::span<std::vector<float>> rows;  // [tables][keys * dim]; of the dense table nothing.
  std::span<float> dense;              // [dense chunks * kDenseChunkFloats]
};

// Under async and ssp a push is an update of its own: shrinks its gradients so that their norm,
// scaled as the server will, is at most train.clip_norm. `dense_keys` are those of the chunks.
void ClipOwnNorm(const Job& job, uint64_t examples, std::span<const Key> dense_keys,
                 const OwnGradients& gradients);

}  // namespace hdps
