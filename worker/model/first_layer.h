// Computes the dense layer above an embedding once for each distinct row if that is cheaper.
#pragma once

#include <memory>
#include <vector>

#include "kernels/dense_ops.h"
#include "worker/model/layer.h"

namespace hdps {

struct Job;

// Returns the place of the embedding that the layer at `dense` can take over; -1 if there is none,
// or if it is no dense layer. Requires: consumers and homes of `places` are set.
int EmbeddingBelow(const Job& job, const std::vector<Place>& places, uint32_t dense);

// Replaces dense layers that are the only reader of an embedding, directly or through a concat
// without other readers, by a layer that can also multiply distinct rows; it does the embedding's
// work too, and its way through the concat. Changes nothing if the job says plain or the device has
// no such products. Requires: consumers and homes of `places` are set.
void JoinFirstLayers(const Job& job, DenseOps& ops, const std::vector<DenseTensor>& tensors,
                     const std::vector<uint32_t>& first_tensor, std::vector<Place>& places,
                     std::vector<std::unique_ptr<Layer>>& layers);

}  // namespace hdps
