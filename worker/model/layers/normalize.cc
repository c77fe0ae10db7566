// Scales rows to length 1, divided by the temperature.
#include "worker/model/layer.h"

namespace hdps {
namespace {

constexpr float kLengthMin = 1e-12f;

class NormalizeLayer : public Layer {
 public:
  explicit NormalizeLayer(const LayerSite& site)
      : place_(site.place),
        factor_(static_cast<float>(1 / site.Number("temperature"))),
        scales_(&site.ops) {}

  void Forward(Pass& pass) override {
    const Place& self = pass.places[place_];
    pass.ops.RunRows(ScaleToLength{kLengthMin, factor_, pass.places[self.inputs[0]].value,
                                   self.value, scales_.Reserve(self.value.rows)});
  }

  void Backward(Pass& pass) override {
    const Place& self = pass.places[place_];
    Place& input = pass.places[self.inputs[0]];
    if (!input.learns) return;
    pass.ops.RunRows(ScaleToLengthBackward{factor_, scales_.data(), input.value, self.gradient,
                                           input.NextGradient(), input.gradient});
  }

 private:
  uint32_t place_;
  float factor_;
  DeviceArray scales_;  // [n]
};

}  // namespace

std::unique_ptr<Layer> NewNormalize(const LayerSite& site) {
  return std::make_unique<NormalizeLayer>(site);
}

}  // namespace hdps
