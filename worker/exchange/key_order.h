// The order in which a list of keys travels: by server, then shard, then the caller's position.
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

// The keys that a request needs of one table, in the caller's order.
struct KeysOfTable {
  TableId table;
  ShardBy shard_by = ShardBy::kKey;
  uint32_t row_floats = 0;  // dim, or dim + state for PullMode::kWithState and such a store.
  std::span<const Key> keys;
  // Positions in `keys` of those that are meant; none: all. Rows and gradients stay [keys *
  // row_floats] in the caller's arrays, with nothing read or written between.
  std::optional<std::span<const uint32_t>> only = std::nullopt;
  bool dense = false;  // The job's dense table: its rows are never asked for ahead.
  // [shards + 1]: where each shard's keys begin, if whoever found `keys` knows: then they come by
  // shard, and are not hashed again. Empty: not known. Not used beside `only`, nor where the map
  // has another number of shards.
  std::span<const uint32_t> shard_begin = {};
  // [keys]: the shard of each, under ShardBy::kGiven and only there. Then a key may stand at
  // several places, for rows of several shards. Not beside `only`.
  std::span<const uint32_t> shard_of_key = {};
};

// The shards of a map in wire order: server by server, ascending within a server.
class ShardOrder {
 public:
  // Requires: every owner in `shards` is below `num_servers`. The memory is kept.
  void Assign(const ShardMap& shards, uint32_t num_servers);

  uint32_t num_shards() const { return static_cast<uint32_t>(rank_.size()); }
  uint32_t rank(uint32_t shard) const { return rank_[shard]; }  // Its place in this order.
  // The shards of a server are those of the ranks begin(server) to begin(server + 1).
  uint32_t begin(uint32_t server) const { return begin_[server]; }
  // Each server owns neighbours, and the servers come in their order: as the scheduler deals them.
  bool ascends() const { return ascends_; }

 private:
  std::vector<uint32_t> rank_;   // [num_shards]
  std::vector<uint32_t> begin_;  // [num_servers + 1]
  std::vector<uint32_t> next_;   // Scratch.
  bool ascends_ = false;
};

// What sorting one list after another needs, kept for its memory.
struct KeyOrderScratch {
  std::vector<Key> chosen_keys;
  std::vector<uint32_t> shard_of_key;
  std::vector<uint32_t> shard_begin;
  std::vector<uint32_t> next;
};

// One list of keys in wire order.
//
// Invariant: every key that is meant stands at exactly one position of the order, and the keys of
// the shard of rank r are those at begin(r) to begin(r + 1). The list outlives its use here.
class KeyOrder {
 public:
  // One counting sort. Keys that come by shard are not sorted, and not looked at where
  // `table.shard_begin` says where their shards begin. The memory is kept.
  void Sort(const KeysOfTable& table, const ShardOrder& shards, VectorWidth width,
            KeyOrderScratch* scratch);
  // Whether this is the order of those keys: of one span, and the same positions of it.
  bool IsOf(const KeysOfTable& table) const;

  uint32_t begin(uint32_t rank) const { return begin_[rank]; }
  size_t list_size() const { return list_.size(); }  // Of the caller's list, meant or not.
  // All keys are meant, and the wire order is the caller's.
  bool in_order() const { return in_order_; }
  // The keys at `first` and so on.
  const Key* KeysFrom(uint32_t first) const {
    return (in_order_ ? list_.data() : sorted_keys_.data()) + first;
  }
  // The caller's positions of those. Requires: not in_order(), where they are `first` and so on.
  const uint32_t* PositionsFrom(uint32_t first) const { return positions_.data() + first; }

 private:
  // [num_shards + 1]: where each shard's keys begin; empty when keys do not come by shard. In
  // scratch->shard_of_key [keys] are their shards then.
  static std::span<const uint32_t> FindBounds(std::span<const Key> keys, ShardBy shard_by,
                                              uint32_t num_shards, VectorWidth width,
                                              KeyOrderScratch* scratch);
  // The two ways to fill positions_ and sorted_keys_ with `keys`, those that are meant.
  void MoveShards(std::span<const Key> keys, std::span<const uint32_t> shard_begin,
                  const ShardOrder& shards);
  void MoveKeys(std::span<const Key> keys, const uint32_t* shard_of_key, const ShardOrder& shards,
                KeyOrderScratch* scratch);

  std::span<const Key> list_;  // Not looked at before it is sorted again but for KeysFrom().
  std::optional<std::span<const uint32_t>> only_;
  std::span<const uint32_t> shard_of_key_;  // As IsOf compares it; not looked at.
  ShardBy shard_by_ = ShardBy::kKey;
  std::vector<uint32_t> begin_;      // [num_shards + 1]
  bool in_order_ = false;            // Else:
  std::vector<uint32_t> positions_;  // [keys that are meant]
  std::vector<Key> sorted_keys_;     // [keys that are meant]: those at these positions.
};

}  // namespace hdps
