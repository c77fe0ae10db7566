// Leaves out elements at random while training. The choice depends on the row's position in the
// epoch, so the parts of a batch leave out the same elements as the whole batch.
#include "common/base/hash.h"
#include "common/job/job_spec.h"
#include "common/job/spec/layer_spec.h"
#include "worker/model/element_chain.h"

namespace hdps {

std::unique_ptr<Layer> NewDropout(const LayerSite& site) {
  ChainParts parts;
  parts.dropout = {CombineKeys(site.job.seed, HashString("dropout " + site.spec.name)),
                   site.Number("rate")};
  return NewElementChain(site.place, site.self(), parts, site.ops);
}

}  // namespace hdps
