// Batch normalization (Ioffe and Szegedy 2015).
#include "worker/model/element_chain.h"

namespace hdps {

std::unique_ptr<Layer> NewBatchNorm(const LayerSite& site) {
  ChainParts parts;
  parts.norm = {.gain = site.TensorAt(0),
                .bias = site.TensorAt(1),
                .running_mean = site.TensorAt(2),
                .running_variance = site.TensorAt(3),
                .epsilon = static_cast<float>(site.Number("epsilon")),
                .over_batch = site.Word("over") == "batch"};
  return NewElementChain(site.place, site.self(), parts, site.ops);
}

}  // namespace hdps
