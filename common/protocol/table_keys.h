// Describes the keys of one table in a request.
#pragma once

#include <cstdint>
#include <vector>

#include "common/base/ids.h"

namespace hdps {

// The part of a request about one table. Its keys stand in the request's `keys` section after those
// of the tables before it. They are grouped by shard, in ascending order of the server's shards.
// If `keys_of` is not 0, its keys are instead those of the table at position keys_of - 1 of the
// same request, which come before it and are not sent again; it has as many, and no shard_counts.
struct TableKeys {
  TableId table;
  uint32_t num_keys = 0;
  uint32_t row_floats = 0;             // Floats per row in the matching `rows` section.
  std::vector<uint32_t> shard_counts;  // [shards of the server, ascending]; sums to num_keys.
  uint32_t keys_of = 0;

  bool has_own_keys() const { return keys_of == 0; }
};

}  // namespace hdps
