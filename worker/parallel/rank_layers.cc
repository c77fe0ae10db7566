// Layers for conversions: forward brings the value to its reader's layout, backward the gradient to
// the layout of the layer that made the value.
#include "worker/parallel/rank_layers.h"

#include <glog/logging.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "common/job/spec/layer_spec.h"
#include "worker/model/layer.h"
#include "worker/parallel/redistribution.h"

namespace hdps {
namespace {

class ConvertLayer : public ExchangeLayer {
 public:
  ConvertLayer(const LayerSite& site, const ConversionSpec& spec, uint32_t rank,
               std::shared_ptr<LaneRows> lane_rows)
      : place_(site.place), lane_rows_(std::move(lane_rows)), gradient_(&site.ops) {
    if (spec.forward.size() > 1) {
      forward_.emplace(spec.forward, spec.input_columns, spec.output_columns, rank);
    }
    if (spec.backward.size() > 1) {
      backward_.emplace(spec.backward, spec.output_columns, spec.input_columns, rank);
    }
  }

  void BeginForward(Pass& pass) override {
    const Place& self = pass.places[place_];
    const Matrix& input = pass.places[self.inputs[0]].value;
    if (forward_) {
      Start(pass, &*forward_, input, self.value);
    } else {
      pass.ops.Copy(Write::kOver, input, self.value);
    }
  }
  Status EndForward(Pass& pass) override {
    return forward_ ? pass.exchange->Wait(ticket_) : Status();
  }

  void BeginBackward(Pass& pass) override {
    if (!backward_) return;
    const Place& self = pass.places[place_];
    const Matrix& wanted = pass.places[self.inputs[0]].gradient;
    Start(pass, &*backward_, self.gradient, gradient_.ReserveRows(wanted.rows, wanted.cols));
  }
  Status EndBackward(Pass& pass) override {
    const Place& self = pass.places[place_];
    Place& input = pass.places[self.inputs[0]];
    Matrix gradient = self.gradient;
    if (backward_) {
      HDPS_RETURN_IF_ERROR(pass.exchange->Wait(ticket_));
      gradient = gradient_.ReserveRows(input.gradient.rows, input.gradient.cols);
    }
    pass.ops.Copy(input.NextGradient(), gradient, input.gradient);
    return Status();
  }

 private:
  void Start(const Pass& pass, Redistribution* way, const Matrix& from, const Matrix& to) {
    const StepRows& rows = lane_rows_->rows[pass.lane];
    ticket_ = pass.exchange->Start(pass.lane, [way, &rows, from, to](Collective* group) {
      return way->Run(*group, rows, from, to);
    });
  }

  const uint32_t place_;
  const std::shared_ptr<LaneRows> lane_rows_;
  std::optional<Redistribution> forward_, backward_;  // Null: the layout is right already.
  DeviceArray gradient_;                              // Gradient of the input, as received.
  StepExchange::Ticket ticket_ = 0;
};

// Multiplies the rank's columns of x by its rows of W, which gives a summand of x W.
class CutProduct : public Layer {
 public:
  explicit CutProduct(const LayerSite& site)
      : place_(site.place),
        inputs_(site.input(0).width),
        units_(site.spec.units),
        weight_(site.TensorAt(0)) {}

  void Forward(Pass& pass) override {
    const Place& self = pass.places[place_];
    pass.ops.Gemm({}, pass.places[self.inputs[0]].value,
                  {pass.dense + weight_, inputs_, units_, units_}, self.value);
  }

  void Backward(Pass& pass) override {
    const Place& self = pass.places[place_];
    Place& input = pass.places[self.inputs[0]];
    DenseBackward layer;
    layer.x = input.value;
    layer.dy = self.gradient;
    layer.weights = {pass.dense + weight_, inputs_, units_, units_};
    layer.weight_gradient = {pass.dense_gradients + weight_, inputs_, units_, units_};
    if (input.learns) {
      layer.dx = input.gradient;
      layer.write_dx = input.NextGradient();
    }
    pass.ops.BackwardOfDense(layer);
  }

 private:
  uint32_t place_, inputs_, units_;
  size_t weight_;
};

const ConversionSpec& SpecOf(const std::vector<ConversionSpec>& specs, const std::string& layer) {
  const auto spec = std::ranges::find(specs, layer, &ConversionSpec::layer);
  CHECK(spec != specs.end()) << layer;
  return *spec;
}

LayerRecord ConvertRecord(const RankGraph& graph) {
  LayerRecord record;
  record.kind = kConvertKind;
  record.measure = [specs = graph.conversions, rank = graph.rank](
                       const LayerQuestion& question) -> std::variant<LayerShape, LayerProblem> {
    const ConversionSpec& spec = SpecOf(*specs, question.spec.name);
    const Layout& to = spec.forward.back();
    LayerShape shape;
    shape.width =
        spec.output_columns.Part(to.PartOf(rank, AxisRole::kColumns), to.parts(AxisRole::kColumns))
            .size;
    shape.vector_dim = question.inputs[0].shape.vector_dim;
    shape.learns = question.inputs[0].shape.learns;
    return shape;
  };
  record.make = [specs = graph.conversions, rank = graph.rank,
                 lane_rows = graph.lane_rows](const LayerSite& site) -> std::unique_ptr<Layer> {
    return std::make_unique<ConvertLayer>(site, SpecOf(*specs, site.spec.name), rank, lane_rows);
  };
  return record;
}

LayerRecord CutProductRecord() {
  LayerRecord record;
  record.kind = kProductKind;
  record.fields.units = true;
  record.measure = [](const LayerQuestion& question) -> std::variant<LayerShape, LayerProblem> {
    const uint64_t inputs = question.inputs[0].shape.width, units = question.spec.units;
    LayerShape shape;
    shape.width = units;
    shape.learns = true;
    shape.tensors = {{"weight", {inputs, units}, GlorotInit(inputs, units)}};
    return shape;
  };
  record.make = [](const LayerSite& site) -> std::unique_ptr<Layer> {
    return std::make_unique<CutProduct>(site);
  };
  return record;
}

}  // namespace

Status AddRankLayers(const RankGraph& graph, LayerRegistry* layers) {
  HDPS_RETURN_IF_ERROR(layers->Add(ConvertRecord(graph)));
  return layers->Add(CutProductRecord());
}

}  // namespace hdps
