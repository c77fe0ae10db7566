// The layers of a job file: their keys, reading and printing, from the records of their kinds.
#pragma once

#include <deque>
#include <string>
#include <vector>

#include "common/job/layers/layer_record.h"
#include "common/job/text/job_schema.h"

namespace hdps {

// Adds the keys of an object of model.layers; `texts` holds what they point to.
void AddLayerKeys(const LayerRegistry& layers, std::deque<std::string>* texts,
                  std::vector<KeySpec>* keys);

// Layers that passed CheckKeys; every number of a kind gets its value.
std::vector<LayerSpec> ReadLayers(const LayerRegistry& layers, const JsonValue& list);
JsonValue PrintLayer(const LayerRegistry& layers, const LayerSpec& layer);

}  // namespace hdps
