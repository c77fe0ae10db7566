// Makes places from the measured layers, and chooses which of them share memory with a concat.
#include "worker/model/graph.h"

#include <algorithm>
#include <utility>

#include "common/job/job_facts.h"
#include "common/job/job_spec.h"
#include "common/job/model_graph.h"
#include "common/job/spec/layer_spec.h"
#include "common/job/spec/model_spec.h"
#include "common/job/spec/table_spec.h"
#include "worker/model/bf16_layers.h"
#include "worker/model/element_chain.h"
#include "worker/model/first_layer.h"
#include "worker/model/host_layer.h"

namespace hdps {
namespace {

// Appends a tensor.
void AddTensor(const LayerSpec& layer, const LayerShape::Tensor& of_shape,
               std::vector<DenseTensor>* tensors) {
  DenseTensor tensor;
  tensor.name = layer.name + "." + of_shape.part;
  tensor.shape.assign(of_shape.shape.begin(), of_shape.shape.end());
  tensor.init = of_shape.init;
  tensor.uses = of_shape.uses;
  if (!tensors->empty()) {
    tensor.first_chunk = tensors->back().first_chunk + tensors->back().num_chunks;
  }
  tensor.num_chunks = (tensor.size() + kDenseChunkFloats - 1) / kDenseChunkFloats;
  tensors->push_back(std::move(tensor));
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

// Lets places share memory with a concat that reads them. The value always may. The gradient may
// only if no other consumer adds to it, because the concat's gradient is written as a whole, at its
// own time.
void ChooseHomes(const Job& job, std::vector<Place>& places) {
  for (size_t p = 0; p < places.size(); ++p) {
    if (!places[p].used || job.model.layers[p].kind != "concat") continue;
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

Result<Graph> PlanGraph(const Job& job) {
  GraphShape shape;
  for (const GraphProblem& wrong :
       MeasureGraph(job.model, job.tables, FeaturesOf(job.data), &shape)) {
    return Status(Code::kInvalidArgument, "model." + wrong.place + ": " + wrong.problem);
  }
  Graph graph;
  for (size_t i = 0; i < shape.nodes.size(); ++i) {
    const LayerShape& of_layer = shape.nodes[i].shape;
    Place& place = graph.places.emplace_back();
    place.inputs = shape.nodes[i].inputs;
    place.width = static_cast<uint32_t>(of_layer.width);
    place.vector_dim = of_layer.vector_dim;
    place.learns = of_layer.learns;
    graph.first_tensor.push_back(static_cast<uint32_t>(graph.tensors.size()));
    for (const LayerShape::Tensor& tensor : of_layer.tensors) {
      AddTensor(job.model.layers[i], tensor, &graph.tensors);
      graph.tensors.back().layer = static_cast<uint32_t>(i);
    }
  }
  graph.first_tensor.push_back(static_cast<uint32_t>(graph.tensors.size()));
  MarkUsed(graph.places);
  ChooseHomes(job, graph.places);
  return graph;
}

Result<Graph> BuildGraph(const Job& job, DenseOps& ops, DenseOps* host) {
  HDPS_ASSIGN_OR_RETURN(Graph graph, PlanGraph(job));
  HDPS_ASSIGN_OR_RETURN(graph.tables_on_host, TablesOnHost(job, ops));
  for (uint32_t i = 0; i < graph.places.size(); ++i) {
    const std::span<const DenseTensor> tensors =
        std::span(graph.tensors)
            .subspan(graph.first_tensor[i], graph.first_tensor[i + 1] - graph.first_tensor[i]);
    const LayerSite site{job, job.model.layers[i], i, graph.places, ops, tensors};
    if (ComputedOnHost(job, ops, i)) {
      CHECK(host != nullptr);
      HDPS_ASSIGN_OR_RETURN(graph.layers.emplace_back(), NewHostLayer(site, *host));
    } else {
      graph.layers.push_back(NewLayer(site));
    }
  }
  JoinChains(job, graph.places, graph.layers);
  JoinFirstLayers(job, ops, graph.tensors, graph.first_tensor, graph.places, graph.layers);
  ChooseBf16(job, ops, graph.places);
  return graph;
}

Activations::Activations(DenseOps* ops, size_t num_places) {
  for (size_t p = 0; p < num_places; ++p) {
    values_.push_back(std::make_unique<DeviceArray>(ops));
    gradients_.push_back(std::make_unique<DeviceArray>(ops));
  }
}

void Activations::LayValue(size_t rows, std::vector<Place>& places, size_t p) {
  Place& place = places[p];
  const Place* const home =
      place.value_home < 0 ? nullptr : &places[static_cast<size_t>(place.value_home)];
  if (place.value_in_bf16) {
    place.value16 = home == nullptr ? values_[p]->ReserveBf16Rows(rows, place.width)
                                    : home->value16.Columns(place.home_column, place.width);
    place.value = {nullptr, rows, place.width, 0};
  } else {
    place.value = home == nullptr ? values_[p]->ReserveRows(rows, place.width)
                                  : home->value.Columns(place.home_column, place.width);
  }
}

void Activations::Lay(std::span<const size_t> rows, std::vector<Place>& places) {
  for (size_t p = places.size(); p-- > 0;) {  // A concat comes before its inputs.
    Place& place = places[p];
    if (!place.used || place.fused) continue;
    place.gradient_begun = place.gradient_masked = false;
    LayValue(rows[p], places, p);
    const Place* const home =
        place.gradient_home < 0 ? nullptr : &places[static_cast<size_t>(place.gradient_home)];
    if (place.gradient_in_bf16) {
      place.gradient16 = home == nullptr ? gradients_[p]->ReserveBf16Rows(rows[p], place.width)
                                         : home->gradient16.Columns(place.home_column, place.width);
      place.gradient = {nullptr, rows[p], place.width, 0};
    } else if (place.learns) {
      place.gradient = home == nullptr ? gradients_[p]->ReserveRows(rows[p], place.width)
                                       : home->gradient.Columns(place.home_column, place.width);
    }
  }
}

}  // namespace hdps
