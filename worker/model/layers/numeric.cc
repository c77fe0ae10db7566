// The numbers of an example as a layer.
#include <glog/logging.h>

#include "worker/model/layer.h"

namespace hdps {
namespace {

class NumericLayer : public Layer {
 public:
  explicit NumericLayer(uint32_t place) : place_(place) {}
  void Forward(Pass& pass) override {
    pass.ops.UploadRows(pass.sources.numeric, pass.places[place_].value);
  }
  void Backward(Pass&) override { LOG(FATAL) << "numbers have no gradient"; }

 private:
  uint32_t place_;
};

}  // namespace

std::unique_ptr<Layer> NewNumeric(const LayerSite& site) {
  return std::make_unique<NumericLayer>(site.place);
}

}  // namespace hdps
