// One layer of a model.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "common/job/spec/pooling.h"

namespace hdps {

enum class Activation : uint8_t;  // common/job/activation.h

// One layer as the job gives it. The record of its kind says which fields it uses.
struct LayerSpec {
  std::string name;
  std::string kind = "dense";                // The word of its record.
  std::vector<std::string> inputs;           // Names of earlier layers.
  std::string table;                         // embedding: name of its table.
  std::vector<std::string> features;         // embedding: its features; empty for all sparse ones.
  Pooling pooling = Pooling::kSum;           // embedding: pooling of the keys of one feature.
  Combine combine = Combine::kConcat;        // embedding: combination of the features.
  uint32_t units = 0;                        // dense: outputs. cross: number of layers.
  Activation activation = {};                // The default is none.
  std::map<std::string, double> numbers;     // Settings that only some kinds have; see LayerNumber.
  std::map<std::string, std::string> words;  // Likewise, settings that are words; see LayerWord.
  // The cut over the workers: one tuple for each input and weight, or one for all; empty if not
  // given.
  std::vector<std::vector<uint32_t>> shard = {};
  // Gradients of layers with the same id are sent together; 0: alone; -1: any.
  int32_t fusion = -1;
  std::string device = "auto";  // auto | cpu | cuda: where it is computed; auto: as the model.
  // Every worker has its own parameters, which are never exchanged.
  bool layerwise_parallel = false;
  // auto | servers | allreduce: how its gradients meet; auto: as parallel.dense_exchange says.
  std::string dense_exchange = "auto";
  // auto | cpu | cuda: where its parameters are updated; auto: as model.dense_target says.
  std::string dense_target = "auto";
};

}  // namespace hdps
