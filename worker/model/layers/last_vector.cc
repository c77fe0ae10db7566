// Gives the last vector of each example's sequence.
#include "worker/model/layer.h"
#include "worker/model/sequence_lengths.h"

namespace hdps {
namespace {

class LastVectorLayer : public Layer {
 public:
  explicit LastVectorLayer(const LayerSite& site) : place_(site.place), lengths_(site) {}

  void Bring(Pass& pass) override { lengths_.Bring(pass); }

  void Forward(Pass& pass) override {
    const Place& self = pass.places[place_];
    pass.ops.RunRows(
        LastVector{lengths_.counts(), pass.places[self.inputs[0]].value, Write::kOver, self.value});
  }

  void Backward(Pass& pass) override {
    const Place& self = pass.places[place_];
    Place& input = pass.places[self.inputs[0]];
    pass.ops.RunRows(
        LastVectorBackward{lengths_.counts(), self.gradient, input.NextGradient(), input.gradient});
  }

 private:
  uint32_t place_;
  SequenceLengths lengths_;
};

}  // namespace

std::unique_ptr<Layer> NewLastVector(const LayerSite& site) {
  return std::make_unique<LastVectorLayer>(site);
}

}  // namespace hdps
