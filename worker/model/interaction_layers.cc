// Layers that multiply the vectors of one example: factorization machine and pair dots.
#include "worker/model/layer.h"

namespace hdps {
namespace {

class FmLayer : public Layer {
 public:
  FmLayer(uint32_t place, uint32_t dim) : place_(place), dim_(dim) {}

  void Forward(Pass& pass) override {
    const Place& self = pass.places[place_];
    pass.ops.Fm(pass.places[self.inputs[0]].value, dim_, self.value);
  }
  void Backward(Pass& pass) override {
    const Place& self = pass.places[place_];
    Place& input = pass.places[self.inputs[0]];
    if (!input.learns) return;
    pass.ops.FmBackward(input.value, dim_, self.gradient, input.NextGradient(), input.gradient);
  }

 private:
  uint32_t place_, dim_;
};

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

Status ExpectVectors(const LayerSite& site) {
  if (site.input(0).vector_dim != 0) return {};
  return site.Mistake("input '" + site.spec.inputs[0] +
                      "' does not consist of vectors of one dim; take an embedding, or a concat of "
                      "embeddings of one dim");
}

}  // namespace

Result<std::unique_ptr<Layer>> NewFmLayer(const LayerSite& site) {
  HDPS_RETURN_IF_ERROR(site.ExpectInputs(1));
  HDPS_RETURN_IF_ERROR(ExpectVectors(site));
  site.self().width = 1;
  site.self().learns = site.input(0).learns;
  return std::unique_ptr<Layer>(std::make_unique<FmLayer>(site.place, site.input(0).vector_dim));
}

Result<std::unique_ptr<Layer>> NewDotLayer(const LayerSite& site) {
  const size_t inputs = site.self().inputs.size();
  if (inputs != 1 && inputs != 2) {
    return site.Mistake("has " + std::to_string(inputs) +
                        " inputs, takes an embedding and, if wanted, a dense vector");
  }
  HDPS_RETURN_IF_ERROR(ExpectVectors(site));
  const uint32_t dim = site.input(0).vector_dim;
  if (inputs == 2 && site.input(1).width != dim) {
    return site.Mistake("input '" + site.spec.inputs[1] + "' has width " +
                        std::to_string(site.input(1).width) + ", must have the embedding's dim " +
                        std::to_string(dim));
  }
  const size_t vectors = site.input(0).width / dim + inputs - 1;
  if (vectors < 2) return site.Mistake("has one vector, dot products need two or more");
  site.self().width = static_cast<uint32_t>(DotWidth(vectors));
  site.self().learns = site.input(0).learns || (inputs == 2 && site.input(1).learns);
  return std::unique_ptr<Layer>(std::make_unique<DotLayer>(site.place, dim));
}

}  // namespace hdps
