// Finds the slices of each row by its key, and copies the columns that they share.
#include "embedding/recut.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "common/base/shard_map.h"
#include "common/job/optimizers/optimizer_record.h"
#include "common/job/spec/table_spec.h"
#include "common/job/table_slices.h"

namespace hdps {
namespace {

constexpr size_t kBlockRows = 4096;

// Columns of the table's rows that a slice has.
struct Columns {
  uint32_t begin, end;
};
Columns ColumnsOf(const PlacedSlice& placed, uint32_t num_shards) {
  const uint32_t begin = FirstColumn(placed.slice->spec(), placed.shard, num_shards);
  return {begin, begin + placed.slice->dim()};
}

// Copies the shared columns of rows from one slice to another. A row is its weights, the arrays of
// its state, each as long as the weights, and floats for the whole row.
class ColumnCopy {
 public:
  ColumnCopy(const PlacedSlice& from, const PlacedSlice& to, uint32_t num_shards)
      : arrays_(1 + RecordOf(to.slice->spec().optimizer).state_arrays),
        from_dim_(from.slice->dim()),
        to_dim_(to.slice->dim()),
        row_floats_(to_dim_ + to.slice->state_floats()) {
    const Columns a = ColumnsOf(from, num_shards), b = ColumnsOf(to, num_shards);
    const uint32_t begin = std::max(a.begin, b.begin), end = std::min(a.end, b.end);
    columns_ = begin < end ? end - begin : 0;
    from_begin_ = begin - a.begin;
    to_begin_ = begin - b.begin;
  }

  bool any() const { return columns_ > 0; }
  size_t row_floats() const { return row_floats_; }  // Of the slice that the rows go to.
  void Copy(const float* from, float* to) const {
    for (size_t array = 0; array < arrays_; ++array) {
      std::copy_n(from + array * from_dim_ + from_begin_, columns_,
                  to + array * to_dim_ + to_begin_);
    }
    std::copy_n(from + arrays_ * from_dim_, row_floats_ - arrays_ * to_dim_,
                to + arrays_ * to_dim_);
  }

 private:
  const size_t arrays_, from_dim_, to_dim_, row_floats_;
  size_t columns_ = 0, from_begin_ = 0, to_begin_ = 0;
};

// Calls use(shard) for each shard that holds a part of the row of `key`.
template <typename Use>
void ForEachShardOf(const TableSpec& table, Key key, uint32_t num_shards, const Use& use) {
  const uint32_t slices = table.row_slices();
  if (slices == 1) return use(ShardOf(key, table.shard_by, num_shards));
  for (uint32_t s = 0; s < slices; ++s) use(ShardId{ColumnShard(key, s, slices, num_shards)});
}

}  // namespace

Status RecutRows(const PlacedSlice& from, uint32_t num_shards, std::span<const PlacedSlice> to) {
  if (to.empty()) return {};
  const TableSpec& table = to[0].slice->spec();
  std::vector<ColumnCopy> copies;
  std::vector<std::optional<size_t>> at_shard(num_shards);  // Positions in `to`.
  for (size_t i = 0; i < to.size(); ++i) {
    copies.emplace_back(from, to[i], num_shards);
    if (copies[i].any()) at_shard[to[i].shard.value] = i;
  }
  std::vector<std::vector<size_t>> own(to.size());  // Positions of a block's rows for each slice.
  std::vector<Key> own_keys;
  std::vector<float> own_rows;
  return from.slice->VisitRows(
      kBlockRows, [&](std::span<const Key> keys, std::span<const float> rows) -> Status {
        for (std::vector<size_t>& positions : own) positions.clear();
        for (size_t k = 0; k < keys.size(); ++k) {
          ForEachShardOf(table, keys[k], num_shards, [&](ShardId shard) {
            if (at_shard[shard.value]) own[*at_shard[shard.value]].push_back(k);
          });
        }
        const size_t from_floats = rows.size() / keys.size();
        for (size_t i = 0; i < to.size(); ++i) {
          if (own[i].empty()) continue;
          const size_t row_floats = copies[i].row_floats();
          own_keys.clear();
          for (const size_t k : own[i]) own_keys.push_back(keys[k]);
          own_rows.resize(own_keys.size() * row_floats);
          to[i].slice->Read(own_keys, static_cast<uint32_t>(row_floats), own_rows);
          for (size_t r = 0; r < own_keys.size(); ++r) {
            copies[i].Copy(&rows[own[i][r] * from_floats], &own_rows[r * row_floats]);
          }
          to[i].slice->Store(own_keys, static_cast<uint32_t>(row_floats), own_rows);
          HDPS_RETURN_IF_ERROR(to[i].slice->failure());
        }
        return {};
      });
}

}  // namespace hdps
