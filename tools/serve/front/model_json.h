// Writes what a served model says of itself, as two protocols have it.
#pragma once

#include <span>
#include <string>

#include "common/base/ids.h"
#include "tools/serve/served_model.h"

namespace hdps {

// All of these are JSON texts.

// The Open Inference Protocol: this server, a model, and (by Triton's extension) all models.
std::string ServerMetadata();
std::string ModelMetadata(const ServedModel& model);
std::string RepositoryIndex(std::span<ServedModel* const> models);

// TensorFlow Serving's states of versions: AVAILABLE is the one that answers, and START the others
// of its folder, which :use can load. kNoClock: all of them, with the one that answers first.
std::string VersionStates(const ServedModel& model, Clock step);

}  // namespace hdps
