// Elements of a layer left out at random while training: which ones depends on the row's position
// in the epoch, so parts of a batch leave out what the whole batch does.
#include "common/base/hash.h"
#include "worker/model/layer.h"

namespace hdps {
namespace {

class DropoutLayer : public Layer {
 public:
  explicit DropoutLayer(const LayerSite& site)
      : place_(site.place),
        rate_(static_cast<float>(site.Number("rate"))),
        stream_(CombineKeys(site.job.seed, HashString("dropout " + site.spec.name))) {}

  void Forward(Pass& pass) override {
    const Place& self = pass.places[place_];
    const Matrix x = pass.places[self.inputs[0]].value;
    if (pass.training) {
      pass.ops.RunRows(Mask(pass, x, Write::kOver, self.value));
    } else {
      pass.ops.Copy(Write::kOver, x, self.value);
    }
  }

  void Backward(Pass& pass) override {
    const Place& self = pass.places[place_];
    Place& input = pass.places[self.inputs[0]];
    if (!input.learns) return;
    pass.ops.RunRows(Mask(pass, self.gradient, input.NextGradient(), input.gradient));
  }

 private:
  Dropout Mask(const Pass& pass, ConstMatrix x, Write write, Matrix y) const {
    Dropout mask;
    mask.stream = CombineKeys(stream_, pass.batch.epoch);
    mask.first_row = pass.batch.first_row + pass.batch.own_row;
    mask.row_stride = pass.batch.row_stride;
    mask.rate = rate_;
    mask.x = x;
    mask.write = write;
    mask.y = y;
    return mask;
  }

  uint32_t place_;
  float rate_;
  uint64_t stream_;
};

}  // namespace

std::unique_ptr<Layer> NewDropout(const LayerSite& site) {
  return std::make_unique<DropoutLayer>(site);
}

}  // namespace hdps
