// Moves the rows of a table into the same table cut over the shards in another way, or into a table
// of another job that begins with them.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "common/base/ids.h"
#include "common/base/status.h"
#include "common/job/spec/table_spec.h"
#include "embedding/snapshot/row_taker.h"
#include "embedding/table.h"

namespace hdps {

struct PlacedSlice {
  TableSlice* slice = nullptr;
  ShardId shard;
};

// What of moved rows is kept beside their weights, and where they go.
struct MoveRule {
  bool state = true;  // The state of the optimizer. Requires: both tables have the same rule.
  // The time of the last update. Without it a row counts as updated before step 1. Uses are kept
  // in any case where both policies count them.
  bool ages = true;
  bool same_shard = false;  // Rows stay in their shard, because keys do not tell it.
  // Returns the key that a row gets; none if it is left out. Null: its own.
  std::function<std::optional<Key>(Key)> key_of = nullptr;
};

// Stores what one shard of a table has of each row into slices of a table of the same dim: the
// whole row, or the columns that both slices have, of its weights and of each array of its state.
// The other columns of a row that is new there keep their initial values until their slice comes.
// So rows are complete once all shards have come, in any order.
//
// Invariant: what is not kept of a row has the initial value of the table that it goes to.
class MovedRows : public RowTaker {
 public:
  // `from` is cut over `from_shards` shards and this shard's number is `shard`; `to` are slices of
  // one table over `to_shards` shards. Requires: they outlive it.
  MovedRows(const TableSpec& from, ShardId shard, uint32_t from_shards,
            std::span<const PlacedSlice> to, uint32_t to_shards, MoveRule rule);
  ~MovedRows() override;

  Status Begin(uint64_t) override { return {}; }
  Status Store(std::span<const Key> keys, std::span<const float> rows) override;
  void Erase(std::span<const Key> keys) override;

 private:
  class ColumnCopy;
  // Finds the positions of keys for each of `to_`, and the keys that they get.
  void Sort(std::span<const Key> keys);
  template <typename Use>
  void ForEachShardOf(Key key, const Use& use) const;

  const ShardId from_shard_;
  const std::vector<PlacedSlice> to_;
  const uint32_t to_shards_;
  const MoveRule rule_;
  std::vector<ColumnCopy> copies_;               // [to]
  std::vector<std::optional<size_t>> at_shard_;  // [to_shards]: positions in `to`.
  std::vector<std::vector<size_t>> own_;         // [to]: positions among the keys of a call.
  std::vector<std::vector<Key>> own_keys_;       // [to]
  std::vector<float> own_rows_;
};

// Moves all rows of `from` into those of `to` that hold them, with the bits that they had.
//
// Requires: both are the same table, cut as WhyNotRecut() allows, over `num_shards` shards.
Status RecutRows(const PlacedSlice& from, uint32_t num_shards, std::span<const PlacedSlice> to);

}  // namespace hdps
