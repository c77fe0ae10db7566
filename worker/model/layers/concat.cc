// Puts other layers side by side.
#include "worker/model/layer.h"

namespace hdps {
namespace {

// Copies inputs into columns. Inputs that live in this layer's columns (Place::value_home) need no
// copy.
class ConcatLayer : public Layer {
 public:
  explicit ConcatLayer(uint32_t place) : place_(place) {}

  void Forward(Pass& pass) override {
    const Place& self = pass.places[place_];
    size_t column = 0;
    for (const uint32_t i : self.inputs) {
      const Place& input = pass.places[i];
      const bool there =
          input.value_home == static_cast<int>(place_) && input.home_column == column;
      if (!there && self.value_in_bf16) {
        pass.ops.bf16()->Narrow(input.value, self.value16.Columns(column, input.width));
      } else if (!there) {
        pass.ops.Copy(Write::kOver, input.value, self.value.Columns(column, input.width));
      }
      column += input.width;
    }
  }

  void Backward(Pass& pass) override {
    const Place& self = pass.places[place_];
    size_t column = 0;
    for (const uint32_t i : self.inputs) {
      Place& input = pass.places[i];
      if (input.learns && input.gradient_home != static_cast<int>(place_)) {
        pass.ops.Copy(input.NextGradient(), self.gradient.Columns(column, input.width),
                      input.gradient);
      }
      column += input.width;
    }
  }

 private:
  uint32_t place_;
};

}  // namespace

std::unique_ptr<Layer> NewConcat(const LayerSite& site) {
  return std::make_unique<ConcatLayer>(site.place);
}

}  // namespace hdps
