// Finds the rows of a slice that its policy evicts, by looking at all of them.
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

// Returns the keys of rows that are old by the policy's IsOld.
std::vector<Key> FindOldRows(const PolicyRows& slice, int64_t step);
// Returns the keys of rows that no step after `last` has updated.
std::vector<Key> FindRowsUntil(const PolicyRows& slice, int64_t last);
// Returns the `count` keys with the lowest ranks, and all others that tie with the last of them.
std::vector<Key> FindLowestRows(const PolicyRows& slice, uint64_t count);

}  // namespace hdps
