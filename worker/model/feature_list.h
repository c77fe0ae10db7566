// Maps the features of an embedding layer to columns of the batch.
#pragma once

#include <cstdint>
#include <vector>

namespace hdps {

struct DataSpec;
struct LayerSpec;

// Returns the positions of the layer's features in FeaturesOf(data).sparse, in the layer's order;
// all of them if the layer names none. Names that the data lacks are left out.
std::vector<uint32_t> FeatureIndexes(const DataSpec& data, const LayerSpec& layer);

}  // namespace hdps
