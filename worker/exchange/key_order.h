// The order in which a list of keys travels: by server, then by shard, then by the caller's
// position.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "common/base/ids.h"
#include "common/base/shard_map.h"
#include "kernels/vector_width.h"

namespace hdps {

// Keys that a request needs from one table, in the caller's order.
struct KeysOfTable {
  TableId table;
  ShardBy shard_by = ShardBy::kKey;
  // dim, or dim + state for PullMode::kWithState and for stores with state.
  uint32_t row_floats = 0;
  std::span<const Key> keys;
  // Positions in `keys` of the keys that are requested; none: all. Rows and gradients stay [keys *
  // row_floats] in the caller's arrays; the rows of other keys are neither read nor written.
  std::optional<std::span<const uint32_t>> only = std::nullopt;
  bool dense = false;  // The job's dense table, whose rows are never prefetched.
  // [shards + 1]: where each shard's keys begin in `keys`, which are sorted by shard then and need
  // not be hashed again. Empty: unknown. Ignored if `only` is set or if the map has another number
  // of shards.
  std::span<const uint32_t> shard_begin = {};
  // [keys]: the shard of each key; set only under ShardBy::kGiven. A key may then appear several
  // times, for rows of several shards. Must be empty if `only` is set.
  std::span<const uint32_t> shard_of_key = {};
};

// Orders the shards of a map as they travel: server by server, ascending within a server.
class ShardOrder {
 public:
  // Requires: every owner in `shards` is below `num_servers`. Memory is reused.
  void Assign(const ShardMap& shards, uint32_t num_servers);

  uint32_t num_shards() const { return static_cast<uint32_t>(rank_.size()); }
  uint32_t rank(uint32_t shard) const { return rank_[shard]; }  // Position in this order.
  // The shards of a server have the ranks from begin(server) to begin(server + 1).
  uint32_t begin(uint32_t server) const { return begin_[server]; }
  // Is true if each server owns consecutive shards and the servers own them in order, which is how
  // the scheduler assigns them.
  bool ascends() const { return ascends_; }

 private:
  std::vector<uint32_t> rank_;   // [num_shards]
  std::vector<uint32_t> begin_;  // [num_servers + 1]
  std::vector<uint32_t> next_;   // Scratch memory.
  bool ascends_ = false;
};

// Scratch memory for sorting one list after another.
struct KeyOrderScratch {
  std::vector<Key> chosen_keys;
  std::vector<uint32_t> shard_of_key;
  std::vector<uint32_t> shard_begin;
  std::vector<uint32_t> next;
};

// One list of keys in wire order.
//
// Invariant: every requested key has exactly one position in the order, and the keys of the shard
// of rank r are those from begin(r) to begin(r + 1). The caller's list outlives its use here.
class KeyOrder {
 public:
  // Sorts the keys with one counting sort. Keys that come by shard are not sorted, and not even
  // read if `table.shard_begin` is set. Memory is reused.
  void Sort(const KeysOfTable& table, const ShardOrder& shards, VectorWidth width,
            KeyOrderScratch* scratch);
  // Returns true if this is the order of those keys: of the same span and the same positions in it.
  bool IsOf(const KeysOfTable& table) const;

  uint32_t begin(uint32_t rank) const { return begin_[rank]; }
  // Length of the caller's list, requested or not.
  size_t list_size() const { return list_.size(); }
  // Is true if all keys are requested and the caller's order is the wire order.
  bool in_order() const { return in_order_; }
  // Returns the keys from position `first` on.
  const Key* KeysFrom(uint32_t first) const {
    return (in_order_ ? list_.data() : sorted_keys_.data()) + first;
  }
  // Returns the caller's positions of those keys. Requires: not in_order(); there they are `first`,
  // `first` + 1, ...
  const uint32_t* PositionsFrom(uint32_t first) const { return positions_.data() + first; }

 private:
  // Returns where each shard's keys begin [num_shards + 1]; empty if the keys do not come by shard,
  // and then scratch->shard_of_key [keys] holds their shards.
  static std::span<const uint32_t> FindBounds(std::span<const Key> keys, ShardBy shard_by,
                                              uint32_t num_shards, VectorWidth width,
                                              KeyOrderScratch* scratch);
  // Fill positions_ and sorted_keys_ with the requested keys.
  void MoveShards(std::span<const Key> keys, std::span<const uint32_t> shard_begin,
                  const ShardOrder& shards);
  void MoveKeys(std::span<const Key> keys, const uint32_t* shard_of_key, const ShardOrder& shards,
                KeyOrderScratch* scratch);

  std::span<const Key> list_;  // Read only by Sort() and KeysFrom().
  std::optional<std::span<const uint32_t>> only_;
  std::span<const uint32_t> shard_of_key_;  // Compared in IsOf(); its elements are not read.
  ShardBy shard_by_ = ShardBy::kKey;
  std::vector<uint32_t> begin_;      // [num_shards + 1]
  bool in_order_ = false;            // If false, these hold the order:
  std::vector<uint32_t> positions_;  // [requested keys]
  std::vector<Key> sorted_keys_;     // [requested keys]: the keys at these positions.
};

}  // namespace hdps
