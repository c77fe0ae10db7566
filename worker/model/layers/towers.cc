// The end of a two-tower model whose loss compares every user with every item: puts both side by
// side.
#include "worker/model/layer.h"

namespace hdps {
namespace {

class TowersLayer : public Layer {
 public:
  explicit TowersLayer(uint32_t place) : place_(place) {}

  void Forward(Pass& pass) override {
    const Place& self = pass.places[place_];
    for (const size_t i : {0, 1}) {
      pass.ops.Copy(Write::kOver, pass.places[self.inputs[i]].value, Half(self.value, i));
    }
  }

  void Backward(Pass& pass) override {
    const Place& self = pass.places[place_];
    for (const size_t i : {0, 1}) {
      Place& input = pass.places[self.inputs[i]];
      if (input.learns) {
        pass.ops.Copy(input.NextGradient(), Half(self.gradient, i), input.gradient);
      }
    }
  }

 private:
  static Matrix Half(Matrix both, size_t i) {
    return both.Columns(i * (both.cols / 2), both.cols / 2);
  }
  uint32_t place_;
};

}  // namespace

std::unique_ptr<Layer> NewTowers(const LayerSite& site) {
  return std::make_unique<TowersLayer>(site.place);
}

}  // namespace hdps
