// Gives the numbers of an example.
#include <glog/logging.h>

#include "worker/model/layer.h"

namespace hdps {
namespace {

class NumericLayer : public Layer {
 public:
  explicit NumericLayer(const LayerSite& site) : place_(site.place), brought_(&site.ops) {}
  void Bring(Pass& pass) override {
    const Place& self = pass.places[place_];
    if (self.value_in_bf16) {
      const Matrix& shape = self.value;
      CHECK_EQ(pass.sources.numeric.size(), shape.rows * shape.cols);
      if (!pass.ops.on_host()) pass.ops.Upload(pass.sources.numeric, Brought(shape));
    } else {
      pass.ops.UploadRows(pass.sources.numeric, self.value);
    }
  }
  void Forward(Pass& pass) override {
    const Place& self = pass.places[place_];
    if (!self.value_in_bf16) return;
    const Matrix& shape = self.value;
    const float* const numbers = pass.ops.on_host() ? pass.sources.numeric.data() : Brought(shape);
    pass.ops.bf16()->Narrow({numbers, shape.rows, shape.cols, shape.cols}, self.value16);
  }
  void Backward(Pass&) override { LOG(FATAL) << "numbers have no gradient"; }

 private:
  float* Brought(const Matrix& shape) { return brought_.Reserve(shape.rows * shape.cols); }

  uint32_t place_;
  DeviceArray brought_;  // On a device that is not the host, where the value is in bf16.
};

}  // namespace

std::unique_ptr<Layer> NewNumeric(const LayerSite& site) {
  return std::make_unique<NumericLayer>(site);
}

}  // namespace hdps
