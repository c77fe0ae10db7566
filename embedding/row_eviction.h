// Which rows of a slice its policy wants gone, found by looking at all of them.
#pragma once

#include <cstdint>
#include <vector>

#include "common/base/ids.h"
#include "embedding/memory/row_policy.h"
#include "embedding/tiered_rows.h"

namespace hdps {

// A slice's rows as a policy reads them.
struct PolicyRows {
  TieredRows& rows;
  const RowPolicy& policy;
  WeightFormat weights;
  uint32_t dim;
  size_t policy_at;  // Byte of a row at which the policy's floats begin.

  std::span<const float> OfPolicy(const std::byte* row) const {
    return {reinterpret_cast<const float*>(row + policy_at), policy.floats()};
  }
};

// Those without an update for so many steps.
std::vector<Key> FindOldRows(const PolicyRows& slice, int64_t step);
// The `count` of the lowest rank; those of equal rank all or none.
std::vector<Key> FindLowestRows(const PolicyRows& slice, uint64_t count);

}  // namespace hdps
