// Rows that several tables of a shard share: one entry of the index and one piece of bytes a key.
#pragma once

#include <bit>
#include <cstdint>
#include <span>
#include <vector>

#include "common/base/hash.h"
#include "common/base/ids.h"
#include "embedding/change_log.h"
#include "embedding/memory/row_batches.h"
#include "embedding/tiered_rows.h"

namespace hdps {

// Adds up the keys that were stored and erased for one table, in any order, and what its policy
// knows of the stored rows.
struct KeySums {
  uint64_t stored = 0, erased = 0;
  void AddStored(std::span<const Key> keys) { stored += SumOf(keys); }
  // `floats`: those of the policy in the row of `key`.
  void AddPolicy(Key key, std::span<const float> floats) {
    uint64_t bits = key;
    for (const float number : floats) bits = MixBits(bits) ^ std::bit_cast<uint32_t>(number);
    stored += MixBits(bits);
  }
  void AddErased(std::span<const Key> keys) { erased += SumOf(keys); }
  friend bool operator==(const KeySums&, const KeySums&) = default;

 private:
  static uint64_t SumOf(std::span<const Key> keys) {
    uint64_t sum = 0;
    for (const Key key : keys) sum += MixBits(key ^ 0x6a6f696e6564u);
    return sum;
  }
};

// The rows of the tables of a group in one shard, or of one table that shares with none.
//
// Invariant: a row is the parts of the tables, and all parts are made, moved to disk, evicted and
// erased together. Version, uses and tier belong to the row.
struct SharedRows {
  SharedRows(size_t row_bytes, uint64_t salt, TableId first_table, const RowPlacement& home,
             bool spills)
      : store(row_bytes, salt, first_table, home, spills) {}

  bool joined() const { return parts.size() > 1; }
  // Tells everybody who notes changes that rows change as of `step`.
  void OnChange(int64_t step) {
    changes.OnChange(step);
    moves.OnChange(step);
    store.OnChange(step);
  }

  TieredRows store;
  ChangeLog changes;           // Since the last save.
  ChangeLog moves;             // Since the rows were last copied to another server; see MarkMove().
  std::vector<RowPart> parts;  // [tables]
  std::vector<KeySums> keys;   // [tables]: only kept if there are several.
  uint64_t admitted = 0, evicted = 0;
  int64_t evicted_step = -1;  // The last step that evicted rows.
};

}  // namespace hdps
