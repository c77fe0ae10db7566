// Sums one step's gradients of cached rows over the workers.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "common/base/status.h"
#include "kernels/dense_ops.h"
#include "worker/collective/collective.h"

namespace hdps {

// Values that the ranks agree on besides the gradients.
struct StepVote {
  uint64_t examples = 0;  // Of this rank; after the reduction of all.
  bool pause = false;     // Of this rank; after the reduction of any.
};

// Gradients of one rank for the tables of one group, which share their slots.
struct HotGradients {
  std::span<const uint32_t> slots;  // [keys]; kNotInSlab for keys that are not cached.
  uint32_t num_hot = 0;             // Slots in use, the same on every rank.
  struct OfTable {
    uint32_t dim = 0;
    const float* values = nullptr;  // [keys * dim], on the device.
  };
  std::vector<OfTable> tables;
};

// Invariant: a sum is added in the order of the ranks and begins with a copy of the first rank's
// that has the row, as at a server: a rank without it adds negative zero, which leaves every float
// as it is. Only rows that some rank touched take part. Gradients stay on the device; memory is
// kept from step to step.
class HotSum {
 public:
  explicit HotSum(DenseOps& ops) : ops_(ops), values_(&ops) {}

  // Reduces twice over the group and waits for the device once. Multiplies this rank's gradients by
  // `part_scale` first. Requires: `groups` has the same tables and num_hot on all ranks.
  Result<StepVote> Add(Collective& collective, const StepVote& mine, float part_scale,
                       std::span<const HotGradients> groups);

  // Slots of group g that some rank touched, ascending.
  const std::vector<uint32_t>& touched(size_t g) const { return touched_[g]; }
  // The same slots, loaded on the device.
  SlabSlots& loaded(size_t g) const { return *places_[g].touched; }
  // [touched * dim] of table t of group g, on the device.
  const float* sum(size_t g, size_t t) const { return values_.data() + begin_[g][t]; }

 private:
  Result<StepVote> AgreeOnRows(Collective& collective, const StepVote& mine,
                               std::span<const HotGradients> groups);
  void LayOut(std::span<const HotGradients> groups);
  void PutOwn(float part_scale, std::span<const HotGradients> groups);

  // Positions of one group's rows.
  struct Places {
    // [keys]: index in touched_; kNotInSlab for keys that are not cached.
    std::vector<uint32_t> at;
    std::unique_ptr<SlabSlots> own, touched;
  };

  DenseOps& ops_;
  std::vector<uint64_t> touched_bits_;          // One bit a slot, group after group.
  std::vector<std::vector<uint32_t>> touched_;  // [groups]
  // [groups][slots]: index in touched_; undefined for other slots.
  std::vector<std::vector<uint32_t>> position_;
  std::vector<Places> places_;              // [groups]
  std::vector<std::vector<size_t>> begin_;  // [groups][tables]: offset in values_.
  size_t floats_ = 0;
  DeviceArray values_;  // [floats_]
};

}  // namespace hdps
