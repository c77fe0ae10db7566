// First which slots somebody touched, a bit a slot; then the gradients of the rows somebody
// touched.
#include "worker/cache/hot_sum.h"

#include <glog/logging.h>

#include <array>
#include <bit>

#include "kernels/host/row_slab.h"

namespace hdps {
namespace {

constexpr uint32_t kWordBits = 64;

size_t WordsFor(uint32_t slots) { return (slots + kWordBits - 1) / kWordBits; }

}  // namespace

std::span<const float> HotSum::sum(size_t g, size_t t) const {
  const Extent& extent = extents_[g][t];
  return std::span(values_).subspan(extent.begin, extent.size);
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
  size_t words = 0;
  for (const HotGradients& group : groups) words += WordsFor(group.num_hot);
  touched_bits_.assign(words, 0);
  uint64_t* bits = touched_bits_.data();
  for (const HotGradients& group : groups) {
    for (const uint32_t slot : group.slots) {
      if (slot != kNotInSlab) bits[slot / kWordBits] |= uint64_t{1} << slot % kWordBits;
    }
    bits += WordsFor(group.num_hot);
  }
  uint64_t examples = mine.examples, pause = mine.pause ? 1 : 0;
  const std::array lists = {OrOf(touched_bits_), SumOf(std::span(&examples, 1)),
                            OrOf(std::span(&pause, 1))};
  HDPS_RETURN_IF_ERROR(collective.AllReduce(lists));

  touched_.resize(groups.size());
  position_.resize(groups.size());
  bits = touched_bits_.data();
  for (size_t g = 0; g < groups.size(); ++g) {
    touched_[g].clear();
    position_[g].resize(groups[g].num_hot);
    for (size_t word = 0; word < WordsFor(groups[g].num_hot); ++word) {
      for (uint64_t left = bits[word]; left != 0; left &= left - 1) {
        const auto slot =
            static_cast<uint32_t>(word * kWordBits) + static_cast<uint32_t>(std::countr_zero(left));
        position_[g][slot] = static_cast<uint32_t>(touched_[g].size());
        touched_[g].push_back(slot);
      }
    }
    bits += WordsFor(groups[g].num_hot);
  }
  return StepWord{examples, pause != 0};
}

void HotSum::LayOut(std::span<const HotGradients> groups) {
  extents_.resize(groups.size());
  size_t floats = 0;
  for (size_t g = 0; g < groups.size(); ++g) {
    extents_[g].clear();
    for (const HotGradients::OfTable& table : groups[g].tables) {
      const size_t size = touched_[g].size() * table.dim;
      extents_[g].push_back({floats, size});
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
      float* const to = values_.data() + extents_[g][t].begin;
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
