// Computes the mean of each vector of an embedding.
#include "worker/model/layer.h"

namespace hdps {
namespace {

class VectorMeansLayer : public Layer {
 public:
  explicit VectorMeansLayer(uint32_t place) : place_(place) {}

  void Forward(Pass& pass) override {
    const Place& self = pass.places[place_];
    pass.ops.RunRows(MeanOfVectors{pass.places[self.inputs[0]].value, self.value});
  }
  void Backward(Pass& pass) override {
    const Place& self = pass.places[place_];
    Place& input = pass.places[self.inputs[0]];
    if (!input.learns) return;
    pass.ops.RunRows(MeanOfVectorsBackward{self.gradient, input.NextGradient(), input.gradient});
  }

 private:
  uint32_t place_;
};

}  // namespace

std::unique_ptr<Layer> NewVectorMeans(const LayerSite& site) {
  return std::make_unique<VectorMeansLayer>(site.place);
}

}  // namespace hdps
