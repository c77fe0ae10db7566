// Finds the items whose vectors have the largest products with a user's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace hdps {

// Invariant: the search is exact. A score is the sum of the products in the order of the
// dimensions, plus the bias, in float32; of equal scores the earlier item comes first.
//
// Safe to call from any thread.
class ItemRanking {
 public:
  // `vectors` is [texts, dim].
  ItemRanking(std::vector<std::string> texts, std::span<const float> vectors, uint32_t dim,
              float bias);

  struct Ranked {
    float score = 0;
    uint32_t item = 0;
  };
  // Returns the best k items of a user's vector, [dim], the best first; all if there are fewer.
  std::vector<Ranked> Best(std::span<const float> user, uint32_t k) const;

  uint32_t size() const { return static_cast<uint32_t>(texts_.size()); }
  const std::string& text(uint32_t item) const { return texts_[item]; }

 private:
  // Items are multiplied so many at a time, each in a lane of its own, which compilers turn into
  // vectors without changing the order of a sum.
  static constexpr size_t kLanes = 16;

  const std::vector<std::string> texts_;
  const uint32_t dim_;
  const float bias_;
  std::vector<float> blocks_;  // [items / kLanes, dim, kLanes]; the last one is filled with zeros.
};

}  // namespace hdps
