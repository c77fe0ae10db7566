// First who touched what, many slots to a float; then the gradients of the rows somebody touched.
#include "worker/cache/hot_sum.h"

#include <glog/logging.h>

#include <algorithm>
#include <bit>

#include "kernels/host/row_slab.h"

namespace hdps {
namespace {

// A float counts exactly below 2^24.
constexpr uint32_t kCountedBits = 24;
constexpr uint64_t kHalf = 4096;
constexpr size_t kWordFloats = 3;

// How many ranks touched a slot needs so many bits; what fits into one float side by side.
struct Packing {
  explicit Packing(uint32_t ranks)
      : bits(static_cast<uint32_t>(std::bit_width(ranks))), slots_a_float(kCountedBits / bits) {}
  size_t FloatsFor(uint32_t slots) const { return (slots + slots_a_float - 1) / slots_a_float; }

  const uint32_t bits, slots_a_float;
};

}  // namespace

std::span<const float> HotSum::sum(size_t g, size_t t) const {
  const Place& place = places_[g][t];
  return std::span(values_).subspan(place.begin, place.size);
}

Result<StepWord> HotSum::Add(Collective& collective, const StepWord& mine, float part_scale,
                             std::span<const HotGradients> groups) {
  HDPS_ASSIGN_OR_RETURN(const StepWord all, AgreeOnRows(collective, mine, groups));
  LayOut(groups);
  PutOwn(part_scale, groups);
  if (!values_.empty()) HDPS_RETURN_IF_ERROR(collective.AllReduceSum(values_));
  return all;
}

Result<StepWord> HotSum::AgreeOnRows(Collective& collective, const StepWord& mine,
                                     std::span<const HotGradients> groups) {
  const Packing packing(collective.size());
  size_t floats = kWordFloats;
  for (const HotGradients& group : groups) floats += packing.FloatsFor(group.num_hot);
  counts_.assign(floats, 0.0f);
  counts_[0] = static_cast<float>(mine.examples % kHalf);
  counts_[1] = static_cast<float>(mine.examples / kHalf);
  counts_[2] = mine.pause ? 1.0f : 0.0f;
  float* at = counts_.data() + kWordFloats;
  for (const HotGradients& group : groups) {
    for (const uint32_t slot : group.slots) {
      if (slot == kNotInSlab) continue;
      const uint32_t shift = slot % packing.slots_a_float * packing.bits;
      at[slot / packing.slots_a_float] += static_cast<float>(1u << shift);
    }
    at += packing.FloatsFor(group.num_hot);
  }
  HDPS_RETURN_IF_ERROR(collective.AllReduceSum(counts_));

  touched_.resize(groups.size());
  position_.resize(groups.size());
  at = counts_.data() + kWordFloats;
  for (size_t g = 0; g < groups.size(); ++g) {
    const uint32_t num_hot = groups[g].num_hot;
    touched_[g].clear();
    position_[g].resize(num_hot);
    for (uint32_t slot = 0; slot < num_hot; ++slot) {
      const auto packed = static_cast<uint32_t>(at[slot / packing.slots_a_float]);
      const uint32_t shift = slot % packing.slots_a_float * packing.bits;
      if ((packed >> shift & ((1u << packing.bits) - 1)) == 0) continue;
      position_[g][slot] = static_cast<uint32_t>(touched_[g].size());
      touched_[g].push_back(slot);
    }
    at += packing.FloatsFor(num_hot);
  }
  StepWord all;
  all.examples = static_cast<uint64_t>(counts_[0]) + kHalf * static_cast<uint64_t>(counts_[1]);
  all.pause = counts_[2] > 0;
  return all;
}

void HotSum::LayOut(std::span<const HotGradients> groups) {
  places_.resize(groups.size());
  size_t floats = 0;
  for (size_t g = 0; g < groups.size(); ++g) {
    places_[g].clear();
    for (const HotGradients::OfTable& table : groups[g].tables) {
      const size_t size = touched_[g].size() * table.dim;
      places_[g].push_back({floats, size});
      floats += size;
    }
  }
  values_.assign(floats, -0.0f);
}

void HotSum::PutOwn(float part_scale, std::span<const HotGradients> groups) {
  for (size_t g = 0; g < groups.size(); ++g) {
    const std::span<const uint32_t> slots = groups[g].slots;
    for (size_t t = 0; t < groups[g].tables.size(); ++t) {
      const HotGradients::OfTable& table = groups[g].tables[t];
      CHECK_EQ(table.values.size(), slots.size() * table.dim);
      float* const to = values_.data() + places_[g][t].begin;
      for (size_t i = 0; i < slots.size(); ++i) {
        if (slots[i] == kNotInSlab) continue;
        const float* const from = table.values.data() + i * table.dim;
        float* const row = to + size_t{position_[g][slots[i]]} * table.dim;
        for (uint32_t d = 0; d < table.dim; ++d) row[d] = from[d] * part_scale;
      }
    }
  }
}

}  // namespace hdps
