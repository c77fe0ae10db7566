// Agrees first on the slots that any worker touched, one bit each, and then sums the gradients of
// those rows.
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

Result<StepVote> HotSum::Add(Collective& collective, const StepVote& mine, float part_scale,
                             std::span<const HotGradients> groups) {
  HDPS_ASSIGN_OR_RETURN(const StepVote all, AgreeOnRows(collective, mine, groups));
  LayOut(groups);
  PutOwn(part_scale, groups);
  if (floats_ == 0) return all;
  ops_.Finish();
  const MemorySpace space = ops_.on_host() ? MemorySpace::kHost : MemorySpace::kDevice;
  const ReducedValues values = SumOf(std::span(values_.data(), floats_), space);
  HDPS_RETURN_IF_ERROR(collective.AllReduce({&values, 1}));
  return all;
}

Result<StepVote> HotSum::AgreeOnRows(Collective& collective, const StepVote& mine,
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
  return StepVote{examples, pause != 0};
}

void HotSum::LayOut(std::span<const HotGradients> groups) {
  places_.resize(groups.size());
  begin_.resize(groups.size());
  floats_ = 0;
  for (size_t g = 0; g < groups.size(); ++g) {
    begin_[g].clear();
    for (const HotGradients::OfTable& table : groups[g].tables) {
      begin_[g].push_back(floats_);
      floats_ += touched_[g].size() * table.dim;
    }
    Places& places = places_[g];
    places.at.clear();
    for (const uint32_t slot : groups[g].slots) {
      places.at.push_back(slot == kNotInSlab ? kNotInSlab : position_[g][slot]);
    }
    ops_.LoadSlots(places.at, &places.own);
    ops_.LoadSlots(touched_[g], &places.touched);
  }
}

void HotSum::PutOwn(float part_scale, std::span<const HotGradients> groups) {
  float* const values = values_.Reserve(floats_);
  for (size_t g = 0; g < groups.size(); ++g) {
    const size_t rows = touched_[g].size();
    for (size_t t = 0; t < groups[g].tables.size(); ++t) {
      const HotGradients::OfTable& table = groups[g].tables[t];
      const RowSlab own = {values + begin_[g][t], table.dim, 0};
      ops_.RunRows(FillElements{-0.0f, {own.data, rows, table.dim, table.dim}});
      ops_.ScatterRows(Write::kOver, *places_[g].own, table.values, part_scale, own);
    }
  }
}

}  // namespace hdps
