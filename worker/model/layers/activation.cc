// Applies an activation function to each element.
#include "common/job/spec/layer_spec.h"
#include "worker/model/element_chain.h"

namespace hdps {

std::unique_ptr<Layer> NewActivation(const LayerSite& site) {
  ChainParts parts;
  parts.activation = site.spec.activation;
  return NewElementChain(site.place, site.self(), parts, site.ops);
}

}  // namespace hdps
