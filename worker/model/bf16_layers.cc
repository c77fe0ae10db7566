// Chooses bf16 for a place by the layers that read it.
#include "worker/model/bf16_layers.h"

#include <algorithm>

#include "common/job/activation.h"
#include "common/job/job_spec.h"
#include "common/job/spec/model_spec.h"

namespace hdps {
namespace {

// With fewer units, a product costs less than rounding its input.
constexpr uint32_t kUnitsMin = 16;

class Bf16Choice {
 public:
  Bf16Choice(const Job& job, std::vector<Place>& places) : job_(job), places_(places) {}

  void Make() {
    for (size_t p = 0; p < places_.size(); ++p) {
      Place& place = places_[p];
      place.bf16_products = place.used && !place.fused && !place.on_rows &&
                            place.width >= kUnitsMin && Is(p, "dense");
    }
    for (size_t p = 0; p < places_.size(); ++p) {
      if (places_[p].used && !places_[p].fused && places_[p].value_home < 0 && OnlyMultiplied(p)) {
        MoveToBf16(p);
      }
    }
  }

 private:
  bool Is(size_t place, const char* kind) const { return job_.model.layers[place].kind == kind; }

  // Returns true if the value is used in bf16 products only.
  bool OnlyMultiplied(size_t place) const {
    return places_[place].num_consumers > 0 &&
           std::ranges::all_of(places_, [&](const Place& reader) {
             return !reader.used || reader.bf16_products ||
                    !std::ranges::count(reader.inputs, static_cast<uint32_t>(place));
           });
  }

  void MoveToBf16(size_t p) {
    Place& place = places_[p];
    if (Is(p, "embedding")) {
      place.value_in_bf16 = true;
      place.gradient_in_bf16 = place.num_consumers == 1;
    } else if (Is(p, "concat")) {
      place.value_in_bf16 = true;
      for (const uint32_t i : place.inputs) MoveInto(p, i);
      MoveGradient(p);
    } else if (place.bf16_products && place.num_consumers == 1 &&
               (job_.model.layers[p].activation == Activation::kNone || place.relu)) {
      place.value_in_bf16 = place.gradient_in_bf16 = true;
    }
  }

  // Inputs inside the concat are computed there in bf16, or elsewhere and then rounded into it.
  void MoveInto(size_t concat, uint32_t i) {
    Place& input = places_[i];
    if (input.value_home != static_cast<int>(concat)) return;
    if (input.num_consumers == 1 && (Is(i, "embedding") || Is(i, "numeric"))) {
      input.value_in_bf16 = true;
    } else {
      input.value_home = -1;
    }
  }

  // Moves the gradient too, if everything that learns in the concat is rows whose gradient has no
  // other reader.
  void MoveGradient(size_t concat) {
    Place& place = places_[concat];
    if (place.num_consumers != 1 || !place.learns) return;
    for (const uint32_t i : place.inputs) {
      const Place& input = places_[i];
      const bool rows = Is(i, "embedding") && input.gradient_home == static_cast<int>(concat);
      if (input.learns && !rows) return;
    }
    place.gradient_in_bf16 = true;
    for (const uint32_t i : place.inputs) places_[i].gradient_in_bf16 = places_[i].learns;
  }

  const Job& job_;
  std::vector<Place>& places_;
};

}  // namespace

void ChooseBf16(const Job& job, const DenseOps& ops, std::vector<Place>& places) {
  if (ops.bf16() != nullptr) Bf16Choice(job, places).Make();
}

}  // namespace hdps
