// One layer of a model.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "common/job/spec/pooling.h"

namespace hdps {

enum class Activation : uint8_t;  // common/job/activation.h

// One layer as the job gives it. Which of the fields count is said by the record of its kind.
struct LayerSpec {
  std::string name;
  std::string kind = "dense";                // The word of its record.
  std::vector<std::string> inputs;           // Names of layers before this one.
  std::string table;                         // embedding
  std::vector<std::string> features;         // embedding; empty = all sparse features.
  Pooling pooling = Pooling::kSum;           // embedding: of the keys of one feature.
  Combine combine = Combine::kConcat;        // embedding: of the features.
  uint32_t units = 0;                        // dense: outputs. cross: number of layers.
  Activation activation = {};                // None.
  std::map<std::string, double> numbers;     // Settings of its kind alone: see LayerNumber.
  std::map<std::string, std::string> words;  // Likewise: see LayerWord.
  // How it lies over the workers, one tuple an input and weight, or one for all; empty: not said.
  std::vector<std::vector<uint32_t>> shard = {};
  int32_t fusion = -1;  // Gradients of layers with the same id travel together; 0: alone; -1: any.
  std::string device = "auto";      // auto | cpu | cuda: where it is computed; auto: as the model.
  bool layerwise_parallel = false;  // Every worker has parameters of its own, which never meet.
};

}  // namespace hdps
