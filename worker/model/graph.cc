// Builds the graph in the order of the layers; settles who shares memory with a concat.
#include "worker/model/graph.h"

#include <algorithm>
#include <utility>

#include "worker/model/first_layer.h"

namespace hdps {
namespace {

Status FindInputs(const Job& job, const LayerSite& site) {
  for (const std::string& name : site.spec.inputs) {
    uint32_t i = 0;
    while (i < site.place && job.model.layers[i].name != name) ++i;
    if (i == site.place) return site.Mistake("input '" + name + "' is not a layer before this one");
    site.self().inputs.push_back(i);
  }
  return {};
}

Status CheckLogits(const Job& job, const LayerSite& last) {
  const uint32_t width = last.self().width;
  if (job.model.loss == LossKind::kLogloss && width != 1) {
    return last.Mistake("the last layer has width " + std::to_string(width) +
                        ", logloss takes width 1");
  }
  if (job.model.loss == LossKind::kSoftmax && width < 2) {
    return last.Mistake("the last layer has width 1, softmax takes one column a class, 2 or more");
  }
  if (!last.self().learns) return last.Mistake("nothing below the last layer learns");
  return {};
}

void MarkUsed(std::vector<Place>& places) {
  places.back().used = true;
  for (size_t p = places.size(); p-- > 0;) {
    if (!places[p].used) continue;
    for (const uint32_t i : places[p].inputs) {
      places[i].used = true;
      ++places[i].num_consumers;
    }
  }
}

// The value of a place may always live in a concat that takes it. Its gradient may only when no
// other consumer adds to it: the concat's gradient is written as a whole, at its own time.
void ChooseHomes(const Job& job, std::vector<Place>& places) {
  for (size_t p = 0; p < places.size(); ++p) {
    if (!places[p].used || job.model.layers[p].kind != LayerKind::kConcat) continue;
    uint32_t column = 0;
    for (const uint32_t i : places[p].inputs) {
      Place& input = places[i];
      if (input.value_home < 0) {
        input.value_home = static_cast<int>(p);
        input.home_column = column;
        if (input.num_consumers == 1) input.gradient_home = static_cast<int>(p);
      }
      column += input.width;
    }
  }
}

}  // namespace

Result<Graph> BuildGraph(const Job& job, DenseOps& ops) {
  Graph graph;
  const std::vector<LayerSpec>& specs = job.model.layers;
  if (specs.empty()) return Status(Code::kInvalidArgument, "model.layers: has no layers");
  graph.places.resize(specs.size());
  const auto site_of = [&](uint32_t i) {
    return LayerSite{job, specs[i], i, graph.places, ops, graph.tensors};
  };
  for (uint32_t i = 0; i < specs.size(); ++i) {
    graph.first_tensor.push_back(static_cast<uint32_t>(graph.tensors.size()));
    const LayerSite site = site_of(i);
    HDPS_RETURN_IF_ERROR(FindInputs(job, site));
    HDPS_ASSIGN_OR_RETURN(std::unique_ptr<Layer> layer, NewLayer(site));
    graph.layers.push_back(std::move(layer));
  }
  graph.first_tensor.push_back(static_cast<uint32_t>(graph.tensors.size()));
  HDPS_RETURN_IF_ERROR(CheckLogits(job, site_of(static_cast<uint32_t>(specs.size()) - 1)));
  MarkUsed(graph.places);
  ChooseHomes(job, graph.places);
  JoinFirstLayers(job, ops, graph.tensors, graph.first_tensor, graph.places, graph.layers);
  return graph;
}

Activations::Activations(DenseOps* ops, size_t num_places) {
  for (size_t p = 0; p < num_places; ++p) {
    values_.push_back(std::make_unique<DeviceArray>(ops));
    gradients_.push_back(std::make_unique<DeviceArray>(ops));
  }
}

void Activations::Lay(size_t rows, std::vector<Place>& places) {
  for (size_t p = places.size(); p-- > 0;) {  // A concat before what lives in it.
    Place& place = places[p];
    if (!place.used) continue;
    place.gradient_begun = place.gradient_masked = false;
    const auto own = [&](DeviceArray& array) {
      const size_t stride = RowStride(place.width);
      return Matrix{array.Reserve(rows * stride), rows, place.width, stride};
    };
    place.value = place.value_home < 0
                      ? own(*values_[p])
                      : places[static_cast<size_t>(place.value_home)].value.Columns(
                            place.home_column, place.width);
    if (!place.learns) continue;
    place.gradient = place.gradient_home < 0
                         ? own(*gradients_[p])
                         : places[static_cast<size_t>(place.gradient_home)].gradient.Columns(
                               place.home_column, place.width);
  }
}

}  // namespace hdps
