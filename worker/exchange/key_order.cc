// Sorts keys by shard with a counting sort, unless they come by shard already.
#include "worker/exchange/key_order.h"

#include <glog/logging.h>

#include <algorithm>
#include <limits>

#include "kernels/keys/key_shards.h"

namespace hdps {

void ShardOrder::Assign(const ShardMap& shards, uint32_t num_servers) {
  begin_.assign(num_servers + 1, 0);
  for (const ServerId owner : shards.owner) {
    CHECK_LT(owner.value, num_servers) << "the shard map names a server the view does not have";
    ++begin_[owner.value + 1];
  }
  for (uint32_t s = 0; s < num_servers; ++s) begin_[s + 1] += begin_[s];
  next_.assign(begin_.begin(), begin_.end());
  rank_.resize(shards.num_shards());
  for (uint32_t shard = 0; shard < num_shards(); ++shard) {
    rank_[shard] = next_[shards.owner[shard].value]++;
  }
  ascends_ = std::ranges::is_sorted(rank_);
}

bool KeyOrder::IsOf(const KeysOfTable& table) const {
  const auto same = [](const auto& a, const auto& b) {
    return a.data() == b.data() && a.size() == b.size();
  };
  if (!same(list_, table.keys) || shard_by_ != table.shard_by) return false;
  if (!same(shard_of_key_, table.shard_of_key)) return false;
  if (only_.has_value() != table.only.has_value()) return false;
  return !only_.has_value() || same(*only_, *table.only);
}

void KeyOrder::Sort(const KeysOfTable& table, const ShardOrder& shards, VectorWidth width,
                    KeyOrderScratch* scratch) {
  CHECK_LT(table.keys.size(), std::numeric_limits<uint32_t>::max());
  list_ = table.keys;
  only_ = table.only;
  shard_by_ = table.shard_by;
  shard_of_key_ = table.shard_of_key;
  if (shard_by_ == ShardBy::kGiven) {
    CHECK(!only_.has_value() && shard_of_key_.size() == list_.size());
    in_order_ = false;
    positions_.resize(list_.size());
    sorted_keys_.resize(list_.size());
    return MoveKeys(list_, shard_of_key_.data(), shards, scratch);
  }
  std::span<const Key> keys = list_;
  if (only_.has_value()) {
    scratch->chosen_keys.resize(only_->size());
    for (size_t i = 0; i < only_->size(); ++i) scratch->chosen_keys[i] = list_[(*only_)[i]];
    keys = scratch->chosen_keys;
  }
  const uint32_t num_shards = shards.num_shards();
  std::span<const uint32_t> shard_begin = table.shard_begin;
  if (!only_.has_value() && shard_begin.size() == num_shards + 1) {
    CHECK_EQ(shard_begin.back(), keys.size());
  } else {
    shard_begin = FindBounds(keys, shard_by_, num_shards, width, scratch);
  }
  in_order_ = !only_.has_value() && !shard_begin.empty() && shards.ascends();
  if (in_order_) {
    begin_.assign(shard_begin.begin(), shard_begin.end());
    return;
  }
  positions_.resize(keys.size());
  sorted_keys_.resize(keys.size());
  if (shard_begin.empty()) {
    MoveKeys(keys, scratch->shard_of_key.data(), shards, scratch);
  } else {
    MoveShards(keys, shard_begin, shards);
  }
}

std::span<const uint32_t> KeyOrder::FindBounds(std::span<const Key> keys, ShardBy shard_by,
                                               uint32_t num_shards, VectorWidth width,
                                               KeyOrderScratch* scratch) {
  std::vector<uint32_t>& shard_of_key = scratch->shard_of_key;
  shard_of_key.resize(std::max(shard_of_key.size(), keys.size()));
  ShardsOf(width, keys, shard_by, num_shards, shard_of_key.data());
  const std::span<const uint32_t> shards(shard_of_key.data(), keys.size());
  if (!std::ranges::is_sorted(shards)) return {};
  std::vector<uint32_t>& begin = scratch->shard_begin;
  begin.assign(num_shards + 1, 0);
  for (uint32_t s = 1; s <= num_shards; ++s) {
    const auto from = shards.begin() + begin[s - 1];
    begin[s] = static_cast<uint32_t>(std::lower_bound(from, shards.end(), s) - shards.begin());
  }
  return begin;
}

void KeyOrder::MoveShards(std::span<const Key> keys, std::span<const uint32_t> shard_begin,
                          const ShardOrder& shards) {
  const uint32_t num_shards = shards.num_shards();
  begin_.assign(num_shards + 1, 0);
  for (uint32_t shard = 0; shard < num_shards; ++shard) {
    begin_[shards.rank(shard) + 1] = shard_begin[shard + 1] - shard_begin[shard];
  }
  for (uint32_t r = 0; r < num_shards; ++r) begin_[r + 1] += begin_[r];
  for (uint32_t shard = 0; shard < num_shards; ++shard) {
    uint32_t to = begin_[shards.rank(shard)];
    for (uint32_t i = shard_begin[shard]; i < shard_begin[shard + 1]; ++i, ++to) {
      positions_[to] = only_.has_value() ? (*only_)[i] : i;
      sorted_keys_[to] = keys[i];
    }
  }
}

void KeyOrder::MoveKeys(std::span<const Key> keys, const uint32_t* shard_of_key,
                        const ShardOrder& shards, KeyOrderScratch* scratch) {
  begin_.assign(shards.num_shards() + 1, 0);
  for (size_t i = 0; i < keys.size(); ++i) ++begin_[shards.rank(shard_of_key[i]) + 1];
  for (uint32_t r = 0; r < shards.num_shards(); ++r) begin_[r + 1] += begin_[r];
  std::vector<uint32_t>& next = scratch->next;
  next.assign(begin_.begin(), begin_.end());
  uint32_t* const positions = positions_.data();
  Key* const sorted_keys = sorted_keys_.data();
  const uint32_t* const only = only_.has_value() ? only_->data() : nullptr;
  for (uint32_t i = 0; i < keys.size(); ++i) {
    const uint32_t to = next[shards.rank(shard_of_key[i])]++;
    positions[to] = only != nullptr ? only[i] : i;
    sorted_keys[to] = keys[i];
  }
}

}  // namespace hdps
