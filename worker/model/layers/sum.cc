// Adds other layers of the same width.
#include "worker/model/layer.h"

namespace hdps {
namespace {

class SumLayer : public Layer {
 public:
  explicit SumLayer(uint32_t place) : place_(place) {}

  void Forward(Pass& pass) override {
    const Place& self = pass.places[place_];
    Write write = Write::kOver;
    for (const uint32_t i : self.inputs) {
      pass.ops.Copy(write, pass.places[i].value, self.value);
      write = Write::kAdd;
    }
  }

  void Backward(Pass& pass) override {
    const Place& self = pass.places[place_];
    for (const uint32_t i : self.inputs) {
      Place& input = pass.places[i];
      if (input.learns) pass.ops.Copy(input.NextGradient(), self.gradient, input.gradient);
    }
  }

 private:
  uint32_t place_;
};

}  // namespace

std::unique_ptr<Layer> NewSum(const LayerSite& site) {
  return std::make_unique<SumLayer>(site.place);
}

}  // namespace hdps
