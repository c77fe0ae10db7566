// Writes metadata by nlohmann's JSON, with the names in the protocols' order.
#include "tools/serve/front/model_json.h"

#include <nlohmann/json.hpp>
#include <vector>

#include "common/protocol/manifest.h"

namespace hdps {
namespace {

using Json = nlohmann::ordered_json;

// Names come from job files, and may be no UTF-8.
std::string TextOf(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

Json Tensors(const std::vector<TensorNote>& notes) {
  Json tensors = Json::array();
  for (const TensorNote& note : notes) {
    Json shape = {-1};
    if (note.width > 1) shape.push_back(note.width);
    tensors.push_back({{"name", note.name}, {"datatype", note.datatype}, {"shape", shape}});
  }
  return tensors;
}

}  // namespace

std::string ServerMetadata() {
  return TextOf(
      {{"name", "hdps"}, {"version", HDPS_VERSION}, {"extensions", {"binary_tensor_data"}}});
}

std::string ModelMetadata(const ServedModel& model) {
  const ModelNote& note = model.note();
  Json versions = Json::array();
  if (model.ready()) versions.push_back(std::to_string(model.step()));
  return TextOf({{"name", note.name},
                 {"versions", versions},
                 {"platform", "hdps"},
                 {"inputs", Tensors(note.inputs)},
                 {"outputs", Tensors(note.outputs)}});
}

std::string RepositoryIndex(std::span<ServedModel* const> models) {
  Json index = Json::array();
  for (const ServedModel* const model : models) {
    const bool ready = model->ready();
    index.push_back({{"name", model->note().name},
                     {"version", ready ? std::to_string(model->step()) : ""},
                     {"state", ready ? "READY" : "UNAVAILABLE"},
                     {"reason", ""}});
  }
  return TextOf(index);
}

std::string VersionStates(const ServedModel& model, Clock step) {
  Json states = Json::array();
  const auto add = [&](Clock version, const char* state) {
    states.push_back({{"version", std::to_string(version)},
                      {"state", state},
                      {"status", {{"error_code", "OK"}, {"error_message", ""}}}});
  };
  const bool ready = model.ready();
  const Clock answering = model.step();
  if (ready) add(answering, "AVAILABLE");
  if (step == kNoClock) {
    for (const Clock other : model.steps()) {
      if (!ready || other != answering) add(other, "START");
    }
  }
  return TextOf({{"model_version_status", states}});
}

}  // namespace hdps
