// The registry of the built-in layers and optimizers.
#include "common/job/job_registry.h"

#include "common/job/spec/layer_spec.h"
#include "common/job/spec/model_spec.h"

namespace hdps {

const JobRegistry& BuiltInRegistry() {
  static const JobRegistry registry = {BuiltInLayers(), OptimizerRegistry()};
  return registry;
}

const JobRegistry& RegistryOf(const ModelSpec& model) {
  return model.registry == nullptr ? BuiltInRegistry() : *model.registry;
}

bool ReadsRows(const ModelSpec& model, const LayerSpec& layer) {
  return RegistryOf(model).layers.Find(layer.kind)->fields.embedding;
}

}  // namespace hdps
