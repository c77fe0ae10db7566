// Sums the gradients of several workers into one gradient for each key.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "common/base/ids.h"
#include "common/base/status.h"

namespace hdps {

// The gradients of one worker (or of a part of one), and the factor to apply before adding them.
struct GradientPart {
  std::span<const Key> keys;
  std::span<const float> values;  // [keys.size() * dim]
  float scale = 1;
};

// The sum of several workers' gradients, key by key, in the order of the workers.
//
// Invariant: sums_[i * dim ...] belongs to keys_[i]; keys stand in the order of first appearance.
class GradientSums {
 public:
  static constexpr size_t kKeysMax = (size_t{1} << 31) - 1;

  // Returns kResourceExhausted if `parts` have more than kKeysMax keys in all.
  static Status CheckNumber(std::span<const GradientPart> parts);
  // Requires: CheckNumber(parts) is ok.
  void Combine(std::span<const GradientPart> parts, size_t dim);
  // The same for parts that have the keys of those that `other` has combined, which need not be
  // looked up again.
  void CombineLike(const GradientSums& other, std::span<const GradientPart> parts, size_t dim);
  const std::vector<Key>& keys() const { return keys_; }
  const float* values() const { return sums_.data(); }  // [keys, dim]
  float* values() { return sums_.data(); }

 private:
  std::vector<Key> keys_;
  std::vector<float> sums_;
  std::vector<uint32_t> slots_;      // 1 + position in keys_; 0 if empty.
  std::vector<uint32_t> positions_;  // [keys of all parts]: of each in keys_.
};

}  // namespace hdps
