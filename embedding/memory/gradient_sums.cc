// Sums in an open table, in the order of the keys' first appearance.
#include "embedding/memory/gradient_sums.h"

#include <glog/logging.h>

#include <bit>

#include "common/base/hash.h"

namespace hdps {
namespace {

constexpr uint64_t kPlaceSalt = 0x7c6e5f0d3b2a1908u;

}  // namespace

void GradientSums::Combine(std::span<const GradientPart> parts, size_t dim) {
  size_t keys_max = 0;
  for (const auto& part : parts) keys_max += part.keys.size();
  CHECK_LT(keys_max, size_t{1} << 31) << "keys of one step in one shard";
  slots_.assign(std::bit_ceil(2 * keys_max + 1), 0);
  keys_.clear();
  sums_.resize(keys_max * dim);
  const size_t mask = slots_.size() - 1;
  for (const auto& part : parts) {
    for (size_t k = 0; k < part.keys.size(); ++k) {
      const Key key = part.keys[k];
      const float* gradient = &part.values[k * dim];
      size_t at = MixBits(key ^ kPlaceSalt) & mask;
      while (slots_[at] != 0 && keys_[slots_[at] - 1] != key) at = (at + 1) & mask;
      if (slots_[at] == 0) {
        // A sum starts as its first part, not as 0 plus it: -0 stays -0.
        float* sum = &sums_[keys_.size() * dim];
        for (size_t i = 0; i < dim; ++i) sum[i] = gradient[i] * part.scale;
        keys_.push_back(key);
        slots_[at] = static_cast<uint32_t>(keys_.size());
      } else {
        float* sum = &sums_[(slots_[at] - 1) * dim];
        for (size_t i = 0; i < dim; ++i) sum[i] += gradient[i] * part.scale;
      }
    }
  }
}

}  // namespace hdps
