// The layer above an embedding, computed once a distinct row where that is cheaper.
#pragma once

#include <memory>
#include <vector>

#include "kernels/dense_ops.h"
#include "worker/model/layer.h"

namespace hdps {

struct Job;

// The place of the embedding that the layer at `dense` may take over; -1: there is none, or it is
// no dense layer. Needs places with consumers and homes.
int EmbeddingBelow(const Job& job, const std::vector<Place>& places, uint32_t dense);

// Finds dense layers that alone read an embedding, directly or through a concat that nobody else
// reads, and puts into their place in `layers` one that can also multiply distinct rows; the
// embedding, and its way through the concat, is then that layer's own business. Leaves all as it is
// when the job says plain or the device has no such products. Needs places with consumers and
// homes.
void JoinFirstLayers(const Job& job, DenseOps& ops, const std::vector<DenseTensor>& tensors,
                     const std::vector<uint32_t>& first_tensor, std::vector<Place>& places,
                     std::vector<std::unique_ptr<Layer>>& layers);

}  // namespace hdps
