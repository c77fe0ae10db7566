// The features of an embedding layer, as columns of the batch.
#pragma once

#include <cstdint>
#include <vector>

namespace hdps {

struct DataSpec;
struct LayerSpec;

// Positions of the layer's features in FeaturesOf(data).sparse, in the layer's order; all of them
// when the layer names none. A name that the data does not give is left out.
std::vector<uint32_t> FeatureIndexes(const DataSpec& data, const LayerSpec& layer);

}  // namespace hdps
