// Sums gradients in an open hash table, in the order of the keys' first appearance.
#include "embedding/memory/gradient_sums.h"

#include <glog/logging.h>

#include <bit>
#include <string>

#include "common/base/hash.h"

namespace hdps {
namespace {

constexpr uint64_t kPlaceSalt = 0x7c6e5f0d3b2a1908u;

// Adds a scaled gradient to a sum. A sum starts as its first part, not as 0 plus it, so that -0
// stays -0.
inline void AddTo(bool is_first, const float* gradient, float scale, size_t dim, float* sum) {
  if (is_first) {
    for (size_t i = 0; i < dim; ++i) sum[i] = gradient[i] * scale;
  } else {
    for (size_t i = 0; i < dim; ++i) sum[i] += gradient[i] * scale;
  }
}

}  // namespace

Status GradientSums::CheckNumber(std::span<const GradientPart> parts) {
  size_t num_keys = 0;
  for (const GradientPart& part : parts) num_keys += part.keys.size();
  if (num_keys <= kKeysMax) return {};
  return {Code::kResourceExhausted,
          "one step has " + std::to_string(num_keys) + " gradients of a table in one shard, and " +
              std::to_string(kKeysMax) +
              " at most can be added up; give the job a smaller train.batch_size or more "
              "cluster.shards"};
}

void GradientSums::Combine(std::span<const GradientPart> parts, size_t dim) {
  size_t keys_max = 0;
  for (const auto& part : parts) keys_max += part.keys.size();
  CHECK_LE(keys_max, kKeysMax);
  slots_.assign(std::bit_ceil(2 * keys_max + 1), 0);
  keys_.clear();
  positions_.resize(keys_max);
  sums_.resize(keys_max * dim);
  const size_t mask = slots_.size() - 1;
  uint32_t* position = positions_.data();
  for (const auto& part : parts) {
    for (size_t k = 0; k < part.keys.size(); ++k) {
      const Key key = part.keys[k];
      const float* gradient = &part.values[k * dim];
      size_t at = MixBits(key ^ kPlaceSalt) & mask;
      while (slots_[at] != 0 && keys_[slots_[at] - 1] != key) at = (at + 1) & mask;
      const bool is_new = slots_[at] == 0;
      if (is_new) {
        keys_.push_back(key);
        slots_[at] = static_cast<uint32_t>(keys_.size());
      }
      *position++ = slots_[at] - 1;
      AddTo(is_new, gradient, part.scale, dim, &sums_[(slots_[at] - 1) * dim]);
    }
  }
}

void GradientSums::CombineLike(const GradientSums& other, std::span<const GradientPart> parts,
                               size_t dim) {
  keys_ = other.keys_;
  positions_ = other.positions_;
  sums_.resize(positions_.size() * dim);
  uint32_t seen = 0;  // Keys that have a sum; they are numbered in the order of appearance.
  const uint32_t* position = positions_.data();
  for (const auto& part : parts) {
    for (size_t k = 0; k < part.keys.size(); ++k, ++position) {
      const bool is_new = *position == seen;
      seen += is_new ? 1 : 0;
      AddTo(is_new, &part.values[k * dim], part.scale, dim, &sums_[*position * dim]);
    }
  }
  CHECK(position == positions_.data() + positions_.size()) << "other keys";
}

}  // namespace hdps
