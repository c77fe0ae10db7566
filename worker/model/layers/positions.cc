// Adds a learned vector to each vector of a sequence, by its position from the end (Kang and
// McAuley 2018, eq. 1).
#include "worker/model/layer.h"
#include "worker/model/sequence_lengths.h"

namespace hdps {
namespace {

class PositionsLayer : public Layer {
 public:
  explicit PositionsLayer(const LayerSite& site)
      : place_(site.place),
        dim_(site.self().vector_dim),
        followers_(static_cast<uint32_t>(site.self().inputs.size()) - 1),
        weight_(site.TensorAt(0)),
        lengths_(site),
        aligned_(&site.ops) {}

  void Bring(Pass& pass) override { lengths_.Bring(pass); }

  void Forward(Pass& pass) override {
    const Place& self = pass.places[place_];
    AddPositions task;
    task.dim = dim_;
    task.counts = lengths_.counts();
    task.sequence = pass.places[self.inputs[0]].value;
    if (followers_ > 0) task.follower = pass.places[self.inputs[1]].value;
    task.positions = pass.dense + weight_;
    task.y = self.value;
    pass.ops.RunRows(task);
  }

  void Backward(Pass& pass) override {
    const Place& self = pass.places[place_];
    const float* const counts = lengths_.counts();
    const Matrix aligned = aligned_.ReserveRows(self.value.rows, self.width);
    pass.ops.RunRows(AlignVectors{dim_, counts, self.gradient, aligned});
    // This sums columns in the order of the rows.
    pass.ops.ActivationBackward({}, false, aligned, pass.dense_gradients + weight_);
    Place& sequence = pass.places[self.inputs[0]];
    // Behind the last vector of a sequence nothing reads its gradient.
    pass.ops.Copy(sequence.NextGradient(), self.gradient.Columns(0, sequence.width),
                  sequence.gradient);
    if (followers_ == 0) return;
    Place& follower = pass.places[self.inputs[1]];
    if (!follower.learns) return;
    pass.ops.RunRows(LastVector{counts, self.gradient, follower.NextGradient(), follower.gradient});
  }

 private:
  uint32_t place_, dim_, followers_;
  size_t weight_;  // First float in the flat array.
  SequenceLengths lengths_;
  DeviceArray aligned_;  // [n, width]: gradients with the last vector in the last columns.
};

}  // namespace

std::unique_ptr<Layer> NewPositions(const LayerSite& site) {
  return std::make_unique<PositionsLayer>(site);
}

}  // namespace hdps
