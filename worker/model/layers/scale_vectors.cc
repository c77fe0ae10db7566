// Multiplies each vector of an embedding by a number of its own.
#include "worker/model/layer.h"

namespace hdps {
namespace {

class ScaleVectorsLayer : public Layer {
 public:
  explicit ScaleVectorsLayer(uint32_t place) : place_(place) {}

  void Forward(Pass& pass) override {
    const Place& self = pass.places[place_];
    pass.ops.RunRows(ScaleVectors{pass.places[self.inputs[0]].value,
                                  pass.places[self.inputs[1]].value, self.value});
  }
  void Backward(Pass& pass) override {
    const Place& self = pass.places[place_];
    Place &vectors = pass.places[self.inputs[0]], &factors = pass.places[self.inputs[1]];
    ScaleVectorsBackward task;
    task.x = vectors.value;
    task.factors = factors.value;
    task.dy = self.gradient;
    if (vectors.learns) {
      task.write_dx = vectors.NextGradient();
      task.dx = vectors.gradient;
    }
    if (factors.learns) {
      task.write_dfactors = factors.NextGradient();
      task.dfactors = factors.gradient;
    }
    pass.ops.RunRows(task);
  }

 private:
  uint32_t place_;
};

}  // namespace

std::unique_ptr<Layer> NewScaleVectors(const LayerSite& site) {
  return std::make_unique<ScaleVectorsLayer>(site.place);
}

}  // namespace hdps
