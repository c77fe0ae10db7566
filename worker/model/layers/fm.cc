// Computes the second-order term of a factorization machine.
#include "worker/model/layer.h"

namespace hdps {
namespace {

class FmLayer : public Layer {
 public:
  FmLayer(uint32_t place, uint32_t dim) : place_(place), dim_(dim) {}

  void Forward(Pass& pass) override {
    const Place& self = pass.places[place_];
    pass.ops.RunRows(FmRows{dim_, pass.places[self.inputs[0]].value, self.value});
  }
  void Backward(Pass& pass) override {
    const Place& self = pass.places[place_];
    Place& input = pass.places[self.inputs[0]];
    if (!input.learns) return;
    pass.ops.RunRows(
        FmRowsBackward{dim_, input.value, self.gradient, input.NextGradient(), input.gradient});
  }

 private:
  uint32_t place_, dim_;
};

}  // namespace

std::unique_ptr<Layer> NewFm(const LayerSite& site) {
  return std::make_unique<FmLayer>(site.place, site.input(0).vector_dim);
}

}  // namespace hdps
