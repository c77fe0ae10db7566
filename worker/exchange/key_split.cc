// Splits keys by server with one counting sort per list of keys; those that come by shard are not
// sorted, and not looked at where it is known already where their shards begin.
#include "worker/exchange/key_split.h"

#include <glog/logging.h>

#include <algorithm>
#include <limits>

#include "kernels/keys/key_shards.h"

namespace hdps {

void KeySplit::Compute(const ShardMap& shards, uint32_t num_servers,
                       std::span<const KeysOfTable> tables, const MakeBytes& make) {
  NumberSlots(shards, num_servers);
  num_orders_ = 0;
  order_of_input_.clear();
  num_sparse_ = 0;
  for (size_t i = 0; i < tables.size(); ++i) {
    CHECK(i == 0 || tables[i - 1].table < tables[i].table) << "tables of a request must ascend";
    CHECK(i == 0 || !tables[i - 1].dense) << "the dense table comes last";
    order_of_input_.push_back(FindOrder(tables[i]));
    num_sparse_ += !tables[i].dense;
  }
  parts_.resize(num_servers);
  for (uint32_t server = 0; server < num_servers; ++server) FillPart(server, tables, make);
}

void KeySplit::NumberSlots(const ShardMap& shards, uint32_t num_servers) {
  num_shards_ = shards.num_shards();
  server_begin_.assign(num_servers + 1, 0);
  for (const ServerId owner : shards.owner) {
    CHECK_LT(owner.value, num_servers) << "the shard map names a server the view does not have";
    ++server_begin_[owner.value + 1];
  }
  for (uint32_t s = 0; s < num_servers; ++s) server_begin_[s + 1] += server_begin_[s];
  std::vector<uint32_t>& next = next_in_slot_;
  next.assign(server_begin_.begin(), server_begin_.end());
  slot_of_shard_.resize(num_shards_);
  for (uint32_t shard = 0; shard < num_shards_; ++shard) {
    slot_of_shard_[shard] = next[shards.owner[shard].value]++;
  }
  slots_are_shards_ = std::ranges::is_sorted(slot_of_shard_);
}

uint32_t KeySplit::FindOrder(const KeysOfTable& table) {
  for (uint32_t i = 0; i < num_orders_; ++i) {
    const Order& order = orders_[i];
    if (order.keys != table.keys.data() || order.num_keys != table.keys.size() ||
        order.shard_by != table.shard_by || order.all == table.only.has_value()) {
      continue;
    }
    if (order.all) return i;
    if (order.only == table.only->data() && order.num_only == table.only->size()) return i;
  }
  if (num_orders_ == orders_.size()) orders_.emplace_back();
  Sort(table, &orders_[num_orders_]);
  return num_orders_++;
}

void KeySplit::Sort(const KeysOfTable& table, Order* order) {
  CHECK_LT(table.keys.size(), std::numeric_limits<uint32_t>::max());
  const bool all = !table.only.has_value();
  const size_t num_keys = all ? table.keys.size() : table.only->size();
  const auto position = [&](size_t i) { return all ? static_cast<uint32_t>(i) : (*table.only)[i]; };
  order->keys = table.keys.data();
  order->num_keys = table.keys.size();
  order->all = all;
  order->only = all ? nullptr : table.only->data();
  order->num_only = all ? 0 : table.only->size();
  order->shard_by = table.shard_by;
  std::span<const Key> keys = table.keys;
  if (!all) {
    chosen_keys_.resize(num_keys);
    for (size_t i = 0; i < num_keys; ++i) chosen_keys_[i] = table.keys[position(i)];
    keys = chosen_keys_;
  }
  std::span<const uint32_t> shard_begin = table.shard_begin;
  if (all && shard_begin.size() == num_shards_ + 1) {
    CHECK_EQ(shard_begin.back(), num_keys);
  } else {
    shard_begin = FindBounds(keys, table.shard_by);
  }
  const bool by_shard = !shard_begin.empty();
  order->in_order = all && by_shard && slots_are_shards_;
  if (order->in_order) {
    order->slot_begin.assign(shard_begin.begin(), shard_begin.end());
    while (numbers_.size() < num_keys) numbers_.push_back(static_cast<uint32_t>(numbers_.size()));
    return;
  }
  order->caller_position.resize(num_keys);
  order->sorted_keys.resize(num_keys);
  std::vector<uint32_t>& slot_begin = order->slot_begin;
  slot_begin.assign(num_shards_ + 1, 0);
  if (by_shard) {
    for (uint32_t shard = 0; shard < num_shards_; ++shard) {
      slot_begin[slot_of_shard_[shard] + 1] = shard_begin[shard + 1] - shard_begin[shard];
    }
  } else {
    for (size_t i = 0; i < num_keys; ++i) ++slot_begin[slot_of_shard_[shard_of_key_[i]] + 1];
  }
  for (uint32_t s = 0; s < num_shards_; ++s) slot_begin[s + 1] += slot_begin[s];
  uint32_t* const caller_position = order->caller_position.data();
  Key* const sorted_keys = order->sorted_keys.data();
  if (by_shard) {  // A shard at a time.
    for (uint32_t shard = 0; shard < num_shards_; ++shard) {
      uint32_t to = slot_begin[slot_of_shard_[shard]];
      for (uint32_t i = shard_begin[shard]; i < shard_begin[shard + 1]; ++i, ++to) {
        caller_position[to] = position(i);
        sorted_keys[to] = keys[i];
      }
    }
    return;
  }
  next_in_slot_.assign(slot_begin.begin(), slot_begin.end());
  for (size_t i = 0; i < num_keys; ++i) {
    const uint32_t to = next_in_slot_[slot_of_shard_[shard_of_key_[i]]]++;
    caller_position[to] = position(i);
    sorted_keys[to] = keys[i];
  }
}

std::span<const uint32_t> KeySplit::FindBounds(std::span<const Key> keys, ShardBy shard_by) {
  shard_of_key_.resize(std::max(shard_of_key_.size(), keys.size()));
  ShardsOf(width_, keys, shard_by, num_shards_, shard_of_key_.data());
  const std::span<const uint32_t> shards(shard_of_key_.data(), keys.size());
  if (!std::ranges::is_sorted(shards)) return {};
  shard_begin_.assign(num_shards_ + 1, 0);
  for (uint32_t s = 1; s <= num_shards_; ++s) {
    const auto from = shards.begin() + shard_begin_[s - 1];
    shard_begin_[s] =
        static_cast<uint32_t>(std::lower_bound(from, shards.end(), s) - shards.begin());
  }
  return shard_begin_;
}

void KeySplit::FillPart(uint32_t server, std::span<const KeysOfTable> tables,
                        const MakeBytes& make) {
  Part& part = parts_[server];
  part.tables.clear();
  part.input.clear();
  part.num_floats = 0;
  part.num_sparse = 0;
  size_t num_keys = 0;
  for (uint32_t i = 0; i < tables.size(); ++i) {
    const size_t count = PositionsAt(server, i).size();
    if (count == 0) continue;
    TableKeys& to = part.tables.emplace_back();
    to.table = tables[i].table;
    to.num_keys = static_cast<uint32_t>(count);
    to.row_floats = tables[i].row_floats;
    const std::vector<uint32_t>& begin = orders_[order_of_input_[i]].slot_begin;
    for (uint32_t s = server_begin_[server]; s < server_begin_[server + 1]; ++s) {
      to.shard_counts.push_back(begin[s + 1] - begin[s]);
    }
    part.input.push_back(i);
    part.num_sparse += !tables[i].dense;
    part.num_floats += count * tables[i].row_floats;
    num_keys += count;
  }
  const size_t size = num_keys * sizeof(Key);
  std::span<std::byte> section;
  part.keys = Buffer();  // Its memory may be given out again.
  part.keys = make ? make(ServerId{server}, size, &section) : Buffer::Allocate(size, &section);
  auto* to = reinterpret_cast<Key*>(section.data());
  for (const uint32_t i : part.input) {
    const Order& order = orders_[order_of_input_[i]];
    const Key* const from = (order.in_order ? order.keys : order.sorted_keys.data()) +
                            order.slot_begin[server_begin_[server]];
    to = std::copy_n(from, PositionsAt(server, i).size(), to);
  }
}

std::span<const uint32_t> KeySplit::PositionsAt(uint32_t server, uint32_t input) const {
  const Order& order = orders_[order_of_input_[input]];
  const uint32_t begin = order.slot_begin[server_begin_[server]];
  const uint32_t end = order.slot_begin[server_begin_[server + 1]];
  const std::vector<uint32_t>& positions = order.in_order ? numbers_ : order.caller_position;
  return {positions.data() + begin, end - begin};
}

const std::vector<TableKeys>& KeySplit::TablesOf(ServerId server) const {
  return parts_[server.value].tables;
}

const Buffer& KeySplit::KeysOf(ServerId server) const { return parts_[server.value].keys; }

}  // namespace hdps
