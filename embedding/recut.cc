// Finds the slices of each row by its key, and copies the columns that they share.
#include "embedding/recut.h"

#include <algorithm>
#include <utility>

#include "common/base/shard_map.h"
#include "common/job/optimizers/optimizer_record.h"
#include "common/job/table_slices.h"
#include "embedding/memory/row_policy.h"

namespace hdps {
namespace {

constexpr size_t kBlockRows = 4096;

}  // namespace

// Copies the shared columns of rows from one slice to another. A row is its weights, the arrays of
// its state, each as long as the weights, floats of the state for the whole row, and the policy's.
class MovedRows::ColumnCopy {
 public:
  ColumnCopy(const TableSpec& from, uint32_t from_column, const TableSpec& to, uint32_t to_column,
             const MoveRule& rule)
      : arrays_(1 + (rule.state ? RecordOf(to.optimizer).state_arrays : 0)),
        more_(rule.state ? RecordOf(to.optimizer).state_more : 0),
        from_dim_(from.slice_dim()),
        to_dim_(to.slice_dim()),
        from_policy_(from_dim_ + RecordOf(from.optimizer).StateFloats(from_dim_)),
        to_policy_(to_dim_ + RecordOf(to.optimizer).StateFloats(to_dim_)),
        from_floats_(from_policy_ + PolicyFloats(from.policy)),
        to_floats_(to_policy_ + PolicyFloats(to.policy)) {
    const uint32_t begin = std::max(from_column, to_column);
    const uint32_t end = std::min(from_column + from_dim_, to_column + to_dim_);
    columns_ = begin < end ? end - begin : 0;
    from_begin_ = begin - from_column;
    to_begin_ = begin - to_column;
    const std::optional<uint32_t> from_uses = UsesFloat(from.policy),
                                  to_uses = UsesFloat(to.policy);
    if (rule.ages) {
      policy_ = to_floats_ - to_policy_;
    } else if (from_uses && to_uses) {
      policy_ = 1;
      from_policy_ += *from_uses;
      to_policy_ += *to_uses;
    }
  }

  bool any() const { return columns_ > 0; }
  size_t from_floats() const { return from_floats_; }
  size_t to_floats() const { return to_floats_; }
  void Copy(const float* from, float* to) const {
    for (size_t array = 0; array < arrays_; ++array) {
      std::copy_n(from + array * from_dim_ + from_begin_, columns_,
                  to + array * to_dim_ + to_begin_);
    }
    std::copy_n(from + arrays_ * from_dim_, more_, to + arrays_ * to_dim_);
    std::copy_n(from + from_policy_, policy_, to + to_policy_);
  }

 private:
  const size_t arrays_, more_;
  const uint32_t from_dim_, to_dim_;
  size_t from_policy_, to_policy_;  // Where those of the policy's floats begin that are copied.
  const size_t from_floats_, to_floats_;
  size_t columns_ = 0, from_begin_ = 0, to_begin_ = 0, policy_ = 0;
};

MovedRows::MovedRows(const TableSpec& from, ShardId shard, uint32_t from_shards,
                     std::span<const PlacedSlice> to, uint32_t to_shards, MoveRule rule)
    : from_shard_(shard),
      to_(to.begin(), to.end()),
      to_shards_(to_shards),
      rule_(std::move(rule)),
      at_shard_(to_shards),
      own_(to.size()),
      own_keys_(to.size()) {
  const uint32_t from_column = FirstColumn(from, shard, from_shards);
  for (size_t i = 0; i < to_.size(); ++i) {
    const TableSpec& spec = to_[i].slice->spec();
    copies_.emplace_back(from, from_column, spec, FirstColumn(spec, to_[i].shard, to_shards),
                         rule_);
    if (copies_[i].any()) at_shard_[to_[i].shard.value] = i;
  }
}

MovedRows::~MovedRows() = default;

// Calls use(shard) for each shard that holds a part of the row of `key`.
template <typename Use>
void MovedRows::ForEachShardOf(Key key, const Use& use) const {
  const TableSpec& table = to_[0].slice->spec();
  const uint32_t slices = table.row_slices();
  if (rule_.same_shard) return use(from_shard_);
  if (slices == 1) return use(ShardOf(key, table.shard_by, to_shards_));
  for (uint32_t s = 0; s < slices; ++s) use(ShardId{ColumnShard(key, s, slices, to_shards_)});
}

void MovedRows::Sort(std::span<const Key> keys) {
  for (size_t i = 0; i < to_.size(); ++i) {
    own_[i].clear();
    own_keys_[i].clear();
  }
  for (size_t k = 0; k < keys.size() && !to_.empty(); ++k) {
    const std::optional<Key> key = rule_.key_of ? rule_.key_of(keys[k]) : keys[k];
    if (!key) continue;
    ForEachShardOf(*key, [&](ShardId shard) {
      const std::optional<size_t> at = at_shard_[shard.value];
      if (!at) return;
      own_[*at].push_back(k);
      own_keys_[*at].push_back(*key);
    });
  }
}

Status MovedRows::Store(std::span<const Key> keys, std::span<const float> rows) {
  Sort(keys);
  for (size_t i = 0; i < to_.size(); ++i) {
    if (own_[i].empty()) continue;
    const size_t from_floats = copies_[i].from_floats(), to_floats = copies_[i].to_floats();
    own_rows_.resize(own_keys_[i].size() * to_floats);
    const auto row_floats = static_cast<uint32_t>(to_floats);
    to_[i].slice->Read(own_keys_[i], row_floats, own_rows_);
    for (size_t r = 0; r < own_[i].size(); ++r) {
      copies_[i].Copy(&rows[own_[i][r] * from_floats], &own_rows_[r * to_floats]);
    }
    to_[i].slice->Store(own_keys_[i], row_floats, own_rows_);
    HDPS_RETURN_IF_ERROR(to_[i].slice->failure());
  }
  return {};
}

void MovedRows::Erase(std::span<const Key> keys) {
  Sort(keys);
  for (size_t i = 0; i < to_.size(); ++i) {
    if (!own_keys_[i].empty()) to_[i].slice->Erase(own_keys_[i]);
  }
}

Status RecutRows(const PlacedSlice& from, uint32_t num_shards, std::span<const PlacedSlice> to) {
  if (to.empty()) return {};
  MovedRows rows(from.slice->spec(), from.shard, num_shards, to, num_shards, MoveRule());
  return from.slice->VisitRows(
      kBlockRows,
      [&](std::span<const Key> keys, std::span<const float> of) { return rows.Store(keys, of); });
}

}  // namespace hdps
