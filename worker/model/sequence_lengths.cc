// Follows a sequence down to the layer that reads its keys, and counts these.
#include "worker/model/sequence_lengths.h"

#include <algorithm>

#include "common/job/job_spec.h"
#include "common/job/spec/layer_spec.h"
#include "common/job/spec/model_spec.h"
#include "worker/model/feature_list.h"

namespace hdps {

SequenceLengths::SequenceLengths(const LayerSite& site) : counts_(&site.ops) {
  const std::vector<LayerSpec>& layers = site.job.model.layers;
  // Each layer that reads a sequence has it as its first input. Of all that give one, `positions`
  // alone may have a second.
  uint32_t at = site.place;
  while (layers[at].kind != "sequence") {
    if (layers[at].kind == "positions")
      followers_ += static_cast<uint32_t>(site.places[at].inputs.size()) - 1;
    at = site.places[at].inputs[0];
  }
  feature_ = FeatureIndexes(site.job.data, layers[at]).at(0);
  length_ = site.places[at].width / site.places[at].vector_dim;
}

void SequenceLengths::Bring(const Pass& pass) {
  const std::vector<uint32_t>& offsets = pass.batch.sparse[feature_].offsets;
  host_counts_.clear();
  for (size_t i = 0; i < pass.batch.num_examples; ++i) {
    const uint32_t keys = std::min(offsets[i + 1] - offsets[i], length_);
    host_counts_.push_back(static_cast<float>(keys + followers_));
  }
  pass.ops.Upload(host_counts_, counts_.Reserve(host_counts_.size()));
}

}  // namespace hdps
