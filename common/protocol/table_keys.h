// What a request says of the keys of one table.
#pragma once

#include <cstdint>
#include <vector>

#include "common/base/ids.h"

namespace hdps {

// The part of a request that concerns one table. Its keys stand in the request's `keys` section
// after those of the tables before it, grouped by shard: first those of the lowest shard the server
// owns, and so on.
struct TableKeys {
  TableId table;
  uint32_t num_keys = 0;
  uint32_t row_floats = 0;             // Floats a row in the `rows` section that goes with it.
  std::vector<uint32_t> shard_counts;  // [shards of the server, ascending]; sums to num_keys.
};

}  // namespace hdps
