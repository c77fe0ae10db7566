// Sums the outer products of all pairs of vectors (Qu et al. 2016, eq. 12).
#include "worker/model/layer.h"

namespace hdps {
namespace {

class OuterLayer : public Layer {
 public:
  explicit OuterLayer(const LayerSite& site)
      : place_(site.place), dim_(site.input(0).vector_dim), sums_(&site.ops) {}

  void Forward(Pass& pass) override {
    const Place& self = pass.places[place_];
    const ConstMatrix x = pass.places[self.inputs[0]].value;
    const Matrix sums = sums_.ReserveRows(x.rows, dim_);
    pass.ops.RunRows(SumVectors{x, sums});
    pass.ops.RunRows(OuterRows{sums, self.value});
  }
  void Backward(Pass& pass) override {
    const Place& self = pass.places[place_];
    Place& input = pass.places[self.inputs[0]];
    if (!input.learns) return;
    pass.ops.RunRows(OuterRowsBackward{sums_.ReserveRows(input.value.rows, dim_), self.gradient,
                                       input.NextGradient(), input.gradient});
  }

 private:
  uint32_t place_, dim_;
  DeviceArray sums_;  // [n, dim], of the current pass.
};

}  // namespace

std::unique_ptr<Layer> NewOuter(const LayerSite& site) {
  return std::make_unique<OuterLayer>(site);
}

}  // namespace hdps
