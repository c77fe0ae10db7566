// Gives the numbers of an example.
#include <glog/logging.h>

#include "worker/model/layer.h"

namespace hdps {
namespace {

class NumericLayer : public Layer {
 public:
  explicit NumericLayer(uint32_t place) : place_(place) {}
  void Bring(Pass& pass) override {
    const Place& self = pass.places[place_];
    if (self.value_in_bf16) {
      const Matrix& shape = self.value;
      CHECK_EQ(pass.sources.numeric.size(), shape.rows * shape.cols);
      pass.ops.bf16()->Narrow({pass.sources.numeric.data(), shape.rows, shape.cols, shape.cols},
                              self.value16);
    } else {
      pass.ops.UploadRows(pass.sources.numeric, self.value);
    }
  }
  void Forward(Pass&) override {}
  void Backward(Pass&) override { LOG(FATAL) << "numbers have no gradient"; }

 private:
  uint32_t place_;
};

}  // namespace

std::unique_ptr<Layer> NewNumeric(const LayerSite& site) {
  return std::make_unique<NumericLayer>(site.place);
}

}  // namespace hdps
