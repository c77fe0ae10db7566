// Bi-interaction pooling: sums the products of all pairs of vectors (He and Chua 2017, eq. 4).
#include "worker/model/layer.h"

namespace hdps {
namespace {

class PairSumLayer : public Layer {
 public:
  explicit PairSumLayer(uint32_t place) : place_(place) {}

  void Forward(Pass& pass) override {
    const Place& self = pass.places[place_];
    pass.ops.RunRows(PairSumRows{pass.places[self.inputs[0]].value, self.value});
  }
  void Backward(Pass& pass) override {
    const Place& self = pass.places[place_];
    Place& input = pass.places[self.inputs[0]];
    if (!input.learns) return;
    pass.ops.RunRows(
        PairSumRowsBackward{input.value, self.gradient, input.NextGradient(), input.gradient});
  }

 private:
  uint32_t place_;
};

}  // namespace

std::unique_ptr<Layer> NewPairSum(const LayerSite& site) {
  return std::make_unique<PairSumLayer>(site.place);
}

}  // namespace hdps
