// Clips the gradients of one worker by their norm, for async and ssp, where no step joins all
// workers.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "common/base/ids.h"

namespace hdps {

struct Job;

// Gradients as they will be pushed: sums over the worker's examples.
struct OwnGradients {
  std::span<std::vector<float>> rows;  // [tables][keys * dim]; empty for the dense table.
  std::span<float> dense;              // [dense chunks * kDenseChunkFloats]
};

// Scales the gradients so that their norm, scaled as the server will scale them, is at most
// train.clip_norm. Under async and ssp each push is an update of its own, so the norm is that of
// one worker. `dense_keys` are the keys of the dense chunks.
void ClipOwnNorm(const Job& job, uint64_t examples, std::span<const Key> dense_keys,
                 const OwnGradients& gradients);

}  // namespace hdps
