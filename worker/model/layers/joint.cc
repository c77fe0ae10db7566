// Computes the logit of the joint probability of two events from their logits.
#include "worker/model/layer.h"

namespace hdps {
namespace {

class JointLayer : public Layer {
 public:
  explicit JointLayer(uint32_t place) : place_(place) {}

  void Forward(Pass& pass) override {
    const Place& self = pass.places[place_];
    pass.ops.RunRows(JointLogit{pass.places[self.inputs[0]].value,
                                pass.places[self.inputs[1]].value, self.value});
  }

  void Backward(Pass& pass) override {
    const Place& self = pass.places[place_];
    for (const size_t i : {0, 1}) {
      Place& input = pass.places[self.inputs[i]];
      if (!input.learns) continue;
      pass.ops.RunRows(JointLogitBackward{input.value, pass.places[self.inputs[1 - i]].value,
                                          self.gradient, input.NextGradient(), input.gradient});
    }
  }

 private:
  uint32_t place_;
};

}  // namespace

std::unique_ptr<Layer> NewJoint(const LayerSite& site) {
  return std::make_unique<JointLayer>(site.place);
}

}  // namespace hdps
