// Looks up an embedding layer's features.
#include "worker/model/feature_list.h"

#include <algorithm>
#include <string>

#include "common/job/job_facts.h"
#include "common/job/spec/layer_spec.h"

namespace hdps {

std::vector<uint32_t> FeatureIndexes(const DataSpec& data, const LayerSpec& layer) {
  const std::vector<std::string> all = FeaturesOf(data).sparse;
  const std::vector<std::string>& names = layer.features.empty() ? all : layer.features;
  std::vector<uint32_t> indexes;
  for (const std::string& name : names) {
    const auto found = std::find(all.begin(), all.end(), name);
    if (found != all.end()) indexes.push_back(static_cast<uint32_t>(found - all.begin()));
  }
  return indexes;
}

}  // namespace hdps
