// Mixes experts by a gate (Ma et al. 2018, eq. 6-7).
#include "worker/model/layer.h"

namespace hdps {
namespace {

class MixtureLayer : public Layer {
 public:
  explicit MixtureLayer(const LayerSite& site)
      : place_(site.place),
        experts_(site.input(1).width),
        shares_(&site.ops),
        share_gradients_(&site.ops) {}

  void Forward(Pass& pass) override {
    const Place& self = pass.places[place_];
    const Matrix shares = shares_.ReserveRows(self.value.rows, experts_);
    pass.ops.RunRows(SoftmaxRows{nullptr, pass.places[self.inputs[1]].value, shares});
    pass.ops.RunRows(WeighVectors{shares, pass.places[self.inputs[0]].value, self.value});
  }

  void Backward(Pass& pass) override {
    const Place& self = pass.places[place_];
    Place &experts = pass.places[self.inputs[0]], &gate = pass.places[self.inputs[1]];
    const Matrix shares = shares_.ReserveRows(self.value.rows, experts_);
    if (experts.learns) {
      pass.ops.RunRows(
          WeighVectorsBackward{shares, self.gradient, experts.NextGradient(), experts.gradient});
    }
    if (!gate.learns) return;
    const Matrix gradients = share_gradients_.ReserveRows(self.value.rows, experts_);
    pass.ops.RunRows(WeightsBackward{experts.value, self.gradient, gradients});
    pass.ops.RunRows(SoftmaxRowsBackward{shares, gradients, gate.NextGradient(), gate.gradient});
  }

 private:
  uint32_t place_, experts_;
  DeviceArray shares_, share_gradients_;  // [n, experts]
};

}  // namespace

std::unique_ptr<Layer> NewMixture(const LayerSite& site) {
  return std::make_unique<MixtureLayer>(site);
}

}  // namespace hdps
