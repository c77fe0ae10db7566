// Adds the gradients of a loss of states and the items that follow them (Zhou et al. 2019, eq. 5).
#include "worker/model/layer.h"
#include "worker/model/sequence_lengths.h"

namespace hdps {
namespace {

class NextItemLayer : public Layer {
 public:
  explicit NextItemLayer(const LayerSite& site)
      : place_(site.place),
        dim_(site.self().vector_dim),
        factor_(static_cast<float>(site.Number("loss_weight"))),
        lengths_(site),
        weights_(&site.ops) {}

  void Bring(Pass& pass) override {
    lengths_.Bring(pass);
    weighted_ = !pass.batch.weights.empty();
    if (weighted_) pass.ops.Upload(pass.batch.weights, weights_.Reserve(pass.batch.weights.size()));
  }

  void Forward(Pass& pass) override {
    const Place& self = pass.places[place_];
    pass.ops.Copy(Write::kOver, pass.places[self.inputs[0]].value, self.value);
  }

  void Backward(Pass& pass) override {
    const Place& self = pass.places[place_];
    Place &states = pass.places[self.inputs[0]], &items = pass.places[self.inputs[1]];
    NextItemShape of;
    of.dim = dim_;
    of.factor = factor_;
    of.weights = weighted_ ? weights_.data() : nullptr;
    of.counts = lengths_.counts();
    of.states = states.value;
    of.items = items.value;
    pass.ops.Copy(states.NextGradient(), self.gradient, states.gradient);
    pass.ops.RunRows(NextItemStates{of, states.gradient});
    pass.ops.RunRows(NextItemItems{of, items.NextGradient(), items.gradient});
  }

 private:
  uint32_t place_, dim_;
  float factor_;
  SequenceLengths lengths_;
  bool weighted_ = false;
  DeviceArray weights_;  // [n], of the examples.
};

}  // namespace

std::unique_ptr<Layer> NewNextItem(const LayerSite& site) {
  return std::make_unique<NextItemLayer>(site);
}

}  // namespace hdps
