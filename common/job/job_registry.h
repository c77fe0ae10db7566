// The words that a job may use: the kinds of layers and the optimizers.
#pragma once

#include "common/job/layers/layer_record.h"
#include "common/job/optimizers/optimizer_registry.h"

namespace hdps {

struct LayerSpec;
struct ModelSpec;

// What LoadJob and ParseJob know. A program with layers or optimizers of its own adds them to a
// copy of BuiltInRegistry().
struct JobRegistry {
  LayerRegistry layers;
  OptimizerRegistry optimizers;
};

const JobRegistry& BuiltInRegistry();
// The one that the model's job was parsed with.
const JobRegistry& RegistryOf(const ModelSpec& model);
// Whether the layer, of a kind that there is, looks up rows of its table for its features.
bool ReadsRows(const ModelSpec& model, const LayerSpec& layer);

}  // namespace hdps
