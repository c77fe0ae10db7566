// Multiplies a user's vector with blocks of items, and keeps the best in a heap.
#include "tools/serve/versions/item_ranking.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <utility>

namespace hdps {
namespace {

bool IsBefore(const ItemRanking::Ranked& a, const ItemRanking::Ranked& b) {
  return a.score != b.score ? a.score > b.score : a.item < b.item;
}

}  // namespace

ItemRanking::ItemRanking(std::vector<std::string> texts, std::span<const float> vectors,
                         uint32_t dim, float bias)
    : texts_(std::move(texts)), dim_(dim), bias_(bias) {
  blocks_.resize((texts_.size() + kLanes - 1) / kLanes * kLanes * dim);
  for (size_t item = 0; item < texts_.size(); ++item) {
    float* const block = blocks_.data() + item / kLanes * kLanes * dim;
    for (size_t d = 0; d < dim; ++d) block[d * kLanes + item % kLanes] = vectors[item * dim + d];
  }
}

std::vector<ItemRanking::Ranked> ItemRanking::Best(std::span<const float> user, uint32_t k) const {
  std::vector<Ranked> best;  // A heap with the worst of them in front.
  k = std::min(k, size());
  if (k == 0) return best;
  best.reserve(k);
  for (size_t begin = 0; begin < texts_.size(); begin += kLanes) {
    const float* const block = blocks_.data() + begin * dim_;
    std::array<float, kLanes> scores{};
    for (size_t d = 0; d < dim_; ++d) {
      for (size_t lane = 0; lane < kLanes; ++lane) {
        scores[lane] += user[d] * block[d * kLanes + lane];
      }
    }
    const size_t end = std::min(begin + kLanes, texts_.size());
    for (size_t item = begin; item < end; ++item) {
      Ranked one{scores[item - begin] + bias_, static_cast<uint32_t>(item)};
      // What is no number would have no place in an order.
      if (std::isnan(one.score)) one.score = -std::numeric_limits<float>::infinity();
      if (best.size() == k) {
        if (!IsBefore(one, best.front())) continue;
        std::ranges::pop_heap(best, IsBefore);
        best.pop_back();
      }
      best.push_back(one);
      std::ranges::push_heap(best, IsBefore);
    }
  }
  std::ranges::sort_heap(best, IsBefore);
  return best;
}

}  // namespace hdps
