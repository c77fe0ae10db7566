// Computes the order of each list of keys, and from the orders the keys of each server.
#include "worker/exchange/key_split.h"

#include <glog/logging.h>

#include <algorithm>

#include "kernels/row_spans.h"

namespace hdps {

void KeySplit::Compute(const ShardMap& shards, uint32_t num_servers,
                       std::span<const KeysOfTable> tables, const MakeBytes& make) {
  shards_.Assign(shards, num_servers);
  num_orders_ = 0;
  order_of_input_.clear();
  num_sparse_ = 0;
  for (size_t i = 0; i < tables.size(); ++i) {
    CHECK(i == 0 || tables[i - 1].table < tables[i].table) << "tables of a request must ascend";
    CHECK(i == 0 || !tables[i - 1].dense) << "the dense table comes last";
    order_of_input_.push_back(FindOrder(tables[i]));
    num_sparse_ += !tables[i].dense;
  }
  servers_.resize(num_servers);
  marks_.assign(num_servers, {});
  for (uint32_t server = 0; server < num_servers; ++server) Fill({server}, tables, make);
}

uint32_t KeySplit::FindOrder(const KeysOfTable& table) {
  for (uint32_t i = 0; i < num_orders_; ++i) {
    if (orders_[i].IsOf(table)) return i;
  }
  if (num_orders_ == orders_.size()) orders_.emplace_back();
  KeyOrder& order = orders_[num_orders_];
  order.Sort(table, shards_, width_, &scratch_);
  if (order.in_order()) {
    const size_t count = table.keys.size();
    while (numbers_.size() < count) numbers_.push_back(static_cast<uint32_t>(numbers_.size()));
  }
  return num_orders_++;
}

void KeySplit::Fill(ServerId server, std::span<const KeysOfTable> tables, const MakeBytes& make) {
  ServerKeys& its = servers_[server.value];
  its.tables.clear();
  its.input.clear();
  its.num_floats = 0;
  its.num_sparse = 0;
  const uint32_t first = shards_.begin(server.value), end = shards_.begin(server.value + 1);
  size_t num_keys = 0;
  for (uint32_t i = 0; i < tables.size(); ++i) {
    const KeyOrder& order = OrderOf(i);
    const uint32_t count = order.begin(end) - order.begin(first);
    if (count == 0) continue;
    TableKeys& to = its.tables.emplace_back();
    to.table = tables[i].table;
    to.num_keys = count;
    to.row_floats = tables[i].row_floats;
    const auto same = std::ranges::find(its.input, order_of_input_[i],
                                        [this](uint32_t input) { return order_of_input_[input]; });
    its.num_sparse += !tables[i].dense;
    its.num_floats += size_t{count} * tables[i].row_floats;
    if (same != its.input.end()) {
      to.keys_of = static_cast<uint32_t>(same - its.input.begin()) + 1;
    } else {
      for (uint32_t r = first; r < end; ++r) {
        to.shard_counts.push_back(order.begin(r + 1) - order.begin(r));
      }
      num_keys += count;
    }
    its.input.push_back(i);
  }
  const size_t size = num_keys * sizeof(Key);
  std::span<std::byte> section;
  its.keys = Buffer();  // Its memory may be given out again.
  its.keys = make ? make(server, size, &section) : Buffer::Allocate(size, &section);
  auto* to = reinterpret_cast<Key*>(section.data());
  for (size_t t = 0; t < its.tables.size(); ++t) {
    if (!its.tables[t].has_own_keys()) continue;
    const KeyOrder& order = OrderOf(its.input[t]);
    to = std::copy_n(order.KeysFrom(order.begin(first)), its.tables[t].num_keys, to);
  }
}

bool KeySplit::IsContiguous(size_t i) const {
  return i < num_sparse_ && servers_.size() <= kRowSpansMax && OrderOf(i).in_order();
}

std::span<const uint32_t> KeySplit::PositionsAt(ServerId server, uint32_t i) const {
  const KeyOrder& order = OrderOf(i);
  const uint32_t begin = order.begin(shards_.begin(server.value));
  const uint32_t end = order.begin(shards_.begin(server.value + 1));
  return {order.in_order() ? numbers_.data() + begin : order.PositionsFrom(begin), end - begin};
}

void KeySplit::NoteOldestMarks(const KeySplit& other) {
  const auto lower = [](uint64_t* mark, uint64_t to) {
    if (to != 0 && (*mark == 0 || to < *mark)) *mark = to;
  };
  for (size_t s = 0; s < std::min(marks_.size(), other.marks_.size()); ++s) {
    lower(&marks_[s].rows, other.marks_[s].rows);
    lower(&marks_[s].dense, other.marks_[s].dense);
  }
}

}  // namespace hdps
