// Moves the rows of a table that was cut over the shards in one way into the same table cut in
// another (TableSpec::slice_mode).
#pragma once

#include <cstdint>
#include <span>

#include "common/base/ids.h"
#include "common/base/status.h"
#include "embedding/table.h"

namespace hdps {

struct PlacedSlice {
  TableSlice* slice = nullptr;
  ShardId shard;
};

// Stores what `from` has of each row into those of `to` that hold it: the whole row, or the columns
// that both slices have, of its weights and of each array of its state. The other columns of a row
// that is new there keep their initial values until their slice comes. So the rows of a table are
// complete once all of its slices have come, in any order, with the bits that they had.
//
// Requires: both are the same table, cut as WhyNotRecut() allows, over `num_shards` shards.
Status RecutRows(const PlacedSlice& from, uint32_t num_shards, std::span<const PlacedSlice> to);

}  // namespace hdps
