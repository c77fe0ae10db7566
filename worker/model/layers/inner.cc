// Computes the inner product of two rows.
#include "worker/model/layer.h"

namespace hdps {
namespace {

class InnerLayer : public Layer {
 public:
  explicit InnerLayer(uint32_t place) : place_(place) {}

  void Forward(Pass& pass) override {
    const Place& self = pass.places[place_];
    pass.ops.RunRows(InnerRows{pass.places[self.inputs[0]].value, pass.places[self.inputs[1]].value,
                               self.value});
  }

  void Backward(Pass& pass) override {
    const Place& self = pass.places[place_];
    for (const size_t i : {0, 1}) {
      Place& input = pass.places[self.inputs[i]];
      if (!input.learns) continue;
      pass.ops.RunRows(MultiplyByColumn{pass.places[self.inputs[1 - i]].value, self.gradient,
                                        input.NextGradient(), input.gradient});
    }
  }

 private:
  uint32_t place_;
};

}  // namespace

std::unique_ptr<Layer> NewInner(const LayerSite& site) {
  return std::make_unique<InnerLayer>(site.place);
}

}  // namespace hdps
