// Computes dot products of all pairs of vectors.
#include "worker/model/layer.h"

namespace hdps {
namespace {

class DotLayer : public Layer {
 public:
  DotLayer(uint32_t place, uint32_t dim) : place_(place), dim_(dim) {}

  void Forward(Pass& pass) override { pass.ops.Dot(Inputs(pass), pass.places[place_].value); }
  void Backward(Pass& pass) override {
    const Place& self = pass.places[place_];
    DotGradients out;
    Place& embeddings = pass.places[self.inputs[0]];
    if (embeddings.learns) {
      out.embeddings = embeddings.gradient;
      out.write_embeddings = embeddings.NextGradient();
    }
    if (self.inputs.size() == 2 && pass.places[self.inputs[1]].learns) {
      Place& dense = pass.places[self.inputs[1]];
      out.dense = dense.gradient;
      out.write_dense = dense.NextGradient();
    }
    pass.ops.DotBackward(Inputs(pass), self.gradient, out);
  }

 private:
  DotInputs Inputs(const Pass& pass) const {
    const Place& self = pass.places[place_];
    DotInputs in;
    in.embeddings = pass.places[self.inputs[0]].value;
    if (self.inputs.size() == 2) in.dense = pass.places[self.inputs[1]].value;
    in.dim = dim_;
    return in;
  }
  uint32_t place_, dim_;
};

}  // namespace

std::unique_ptr<Layer> NewDot(const LayerSite& site) {
  return std::make_unique<DotLayer>(site.place, site.input(0).vector_dim);
}

}  // namespace hdps
