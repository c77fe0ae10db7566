// The layer kinds and optimizers that a job may use.
#pragma once

#include "common/job/layers/layer_record.h"
#include "common/job/optimizers/optimizer_registry.h"

namespace hdps {

struct LayerSpec;
struct ModelSpec;

// The kinds that LoadJob() and ParseJob() know. A program with its own layers or optimizers adds
// them to a copy of BuiltInRegistry().
struct JobRegistry {
  LayerRegistry layers;
  OptimizerRegistry optimizers;
};

const JobRegistry& BuiltInRegistry();
// Returns the registry with which the model's job was parsed.
const JobRegistry& RegistryOf(const ModelSpec& model);
// Is true if the layer, which must be of a known kind, looks up rows of its table for its features.
bool ReadsRows(const ModelSpec& model, const LayerSpec& layer);

}  // namespace hdps
