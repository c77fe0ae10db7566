// Layer normalization (Ba et al. 2016).
#include "worker/model/layer.h"

namespace hdps {
namespace {

class LayerNormLayer : public Layer {
 public:
  explicit LayerNormLayer(const LayerSite& site)
      : place_(site.place),
        epsilon_(static_cast<float>(site.Number("epsilon"))),
        gain_(site.TensorAt(0)),
        bias_(site.TensorAt(1)),
        normal_(&site.ops),
        scales_(&site.ops) {}

  void Forward(Pass& pass) override {
    const Place& self = pass.places[place_];
    NormalizeRows task;
    task.epsilon = epsilon_;
    task.gain = pass.dense + gain_;
    task.bias = pass.dense + bias_;
    task.x = pass.places[self.inputs[0]].value;
    task.normal = normal_.ReserveRows(self.value.rows, self.width);
    task.y = self.value;
    task.scales = scales_.Reserve(self.value.rows);
    pass.ops.RunRows(task);
  }

  void Backward(Pass& pass) override {
    const Place& self = pass.places[place_];
    Place& input = pass.places[self.inputs[0]];
    NormalizeRowsBackward task;
    task.gain = pass.dense + gain_;
    task.scales = scales_.data();
    task.dy = self.gradient;
    task.normal = normal_.ReserveRows(self.value.rows, self.width);
    if (input.learns) {
      task.write_dx = input.NextGradient();
      task.dx = input.gradient;
    }
    pass.ops.RunRows(task);
    // These sum columns in the order of the rows.
    pass.ops.ActivationBackward({}, false, task.normal, pass.dense_gradients + gain_);
    pass.ops.ActivationBackward({}, false, self.gradient, pass.dense_gradients + bias_);
  }

 private:
  uint32_t place_;
  float epsilon_;
  size_t gain_, bias_;  // First floats in the flat array.
  DeviceArray normal_;  // [n, width]: the rows before gain and bias.
  DeviceArray scales_;  // [n]
};

}  // namespace

std::unique_ptr<Layer> NewLayerNorm(const LayerSite& site) {
  return std::make_unique<LayerNormLayer>(site);
}

}  // namespace hdps
