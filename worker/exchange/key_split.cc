// Splits keys by server with one counting sort per list of keys.
#include "worker/exchange/key_split.h"

#include <glog/logging.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <string>
#include <utility>

#include "kernels/key_shards.h"
#include "worker/exchange/row_moves.h"

namespace hdps {
namespace {

Status UnlikeRequest(ServerId server, const std::string& what, uint64_t got, uint64_t wanted) {
  return Status(Code::kCorruption, "pull reply of server " + std::to_string(server.value) + ": " +
                                       what + " is " + std::to_string(got) + ", asked for " +
                                       std::to_string(wanted));
}

template <typename Message>
ServerRequest RequestTo(uint32_t server, const Message& message) {
  return {ServerId{server}, EncodeMessage(message)};
}

}  // namespace

void KeySplit::Compute(const ShardMap& shards, uint32_t num_servers,
                       std::span<const KeysOfTable> tables) {
  NumberSlots(shards, num_servers);
  num_orders_ = 0;
  order_of_input_.clear();
  for (size_t i = 0; i < tables.size(); ++i) {
    CHECK(i == 0 || tables[i - 1].table < tables[i].table) << "tables of a request must ascend";
    CHECK(i == 0 || !tables[i - 1].dense) << "the dense table comes last";
    order_of_input_.push_back(FindOrder(tables[i]));
  }
  parts_.resize(num_servers);
  for (uint32_t server = 0; server < num_servers; ++server) FillPart(server, tables);
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
  order->slot_begin.assign(num_shards_ + 1, 0);
  order->caller_position.resize(num_keys);
  order->sorted_keys.resize(num_keys);
  slot_of_key_.resize(std::max(slot_of_key_.size(), num_keys));
  std::span<const Key> keys = table.keys;
  if (!all) {
    chosen_keys_.resize(num_keys);
    for (size_t i = 0; i < num_keys; ++i) chosen_keys_[i] = table.keys[position(i)];
    keys = chosen_keys_;
  }
  ShardsOf(width_, keys, table.shard_by, num_shards_, slot_of_key_.data());
  for (size_t i = 0; i < num_keys; ++i) {
    const uint32_t slot = slot_of_shard_[slot_of_key_[i]];
    slot_of_key_[i] = slot;
    ++order->slot_begin[slot + 1];
  }
  for (uint32_t s = 0; s < num_shards_; ++s) order->slot_begin[s + 1] += order->slot_begin[s];
  next_in_slot_.assign(order->slot_begin.begin(), order->slot_begin.end());
  bool in_order = all;
  for (size_t i = 0; i < num_keys; ++i) {
    const uint32_t to = next_in_slot_[slot_of_key_[i]]++;
    order->caller_position[to] = position(i);
    order->sorted_keys[to] = keys[i];
    in_order = in_order && to == i;
  }
  order->in_order = in_order;
}

void KeySplit::FillPart(uint32_t server, std::span<const KeysOfTable> tables) {
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
  std::span<Key> keys;
  part.keys = Buffer::AllocateOf<Key>(num_keys, &keys);
  auto to = keys.begin();
  for (const uint32_t i : part.input) {
    const Order& order = orders_[order_of_input_[i]];
    const auto from = order.sorted_keys.begin() + order.slot_begin[server_begin_[server]];
    to = std::copy_n(from, PositionsAt(server, i).size(), to);
  }
}

std::span<const uint32_t> KeySplit::PositionsAt(uint32_t server, uint32_t input) const {
  const Order& order = orders_[order_of_input_[input]];
  const uint32_t begin = order.slot_begin[server_begin_[server]];
  const uint32_t end = order.slot_begin[server_begin_[server + 1]];
  return {order.caller_position.data() + begin, end - begin};
}

const std::vector<TableKeys>& KeySplit::TablesOf(ServerId server) const {
  return parts_[server.value].tables;
}

const Buffer& KeySplit::KeysOf(ServerId server) const { return parts_[server.value].keys; }

std::vector<ServerRequest> KeySplit::Pulls(const PullTerms& terms) const {
  std::vector<ServerRequest> requests;
  for (uint32_t s = 0; s < num_servers(); ++s) {
    const Part& part = parts_[s];
    if (part.tables.empty() || (terms.mode == PullMode::kAhead && part.num_sparse == 0)) continue;
    PullRequest pull;
    pull.clock = terms.clock;
    pull.mode = terms.mode;
    pull.pushed = terms.pushed;
    pull.list = terms.list;
    pull.format = terms.format;
    pull.tables = part.tables;
    pull.keys = part.keys;
    requests.push_back(RequestTo(s, pull));
  }
  return requests;
}

std::vector<ServerRequest> KeySplit::Repairs(const RepairTerms& terms) const {
  CHECK_EQ(terms.since.size(), parts_.size());
  std::vector<ServerRequest> requests;
  for (uint32_t s = 0; s < num_servers(); ++s) {
    const Part& part = parts_[s];
    const bool read = terms.since[s] != kNotRead;
    const bool has_dense = part.tables.size() > part.num_sparse;
    if (part.tables.empty() || (read && !terms.changes && !has_dense)) continue;
    PullRequest pull;
    pull.clock = terms.clock;
    pull.mode = read ? PullMode::kRepair : PullMode::kTrain;
    pull.pushed = terms.pushed;
    pull.list = terms.list;
    pull.format = terms.format;
    pull.since = read ? terms.since[s] : 0;
    ServerRequest request = {ServerId{s}, Frame()};
    if (read) request.frame = EncodeMessage(pull);
    pull.tables = part.tables;
    pull.keys = part.keys;
    (read ? request.whole.emplace() : request.frame) = EncodeMessage(pull);
    requests.push_back(std::move(request));
  }
  return requests;
}

std::vector<ServerRequest> KeySplit::Pushes(const PushTerms& terms,
                                            std::span<const std::span<const float>> gradients,
                                            const MakeBytes& make) const {
  std::vector<ServerRequest> requests;
  for (uint32_t s = 0; s < num_servers(); ++s) {
    const bool named = terms.list != 0 && !parts_[s].tables.empty();
    PushRequest push;
    push.sequence = terms.sequence;
    push.clock = terms.clock;
    push.num_examples = terms.num_examples;
    push.list = named ? terms.list : 0;
    push.format = terms.format;
    push.gradients = Gather(ServerId{s}, gradients, terms.format, make);
    ServerRequest request = {ServerId{s}, Frame()};
    if (named) request.frame = EncodeMessage(push);
    push.tables = parts_[s].tables;
    push.keys = parts_[s].keys;
    (named ? request.whole.emplace() : request.frame) = EncodeMessage(push);
    requests.push_back(std::move(request));
  }
  return requests;
}

std::vector<ServerRequest> KeySplit::Stores(Sequence sequence, Clock clock,
                                            std::span<const std::span<const float>> rows) const {
  std::vector<ServerRequest> requests;
  for (uint32_t s = 0; s < num_servers(); ++s) {
    if (parts_[s].tables.empty()) continue;
    StoreRequest store;
    store.tables = parts_[s].tables;
    store.keys = parts_[s].keys;
    store.rows = Gather(ServerId{s}, rows);
    store.sequence = sequence;
    store.clock = clock;
    requests.push_back(RequestTo(s, store));
  }
  return requests;
}

Buffer KeySplit::Gather(ServerId server, std::span<const std::span<const float>> values,
                        FloatFormat format, const MakeBytes& make) const {
  CHECK_EQ(values.size(), order_of_input_.size());
  const Part& part = parts_[server.value];
  const size_t size = part.num_floats * FloatBytes(format);
  std::span<std::byte> section;
  Buffer buffer = make ? make(server, size, &section) : Buffer::Allocate(size, &section);
  std::byte* to = section.data();
  for (size_t t = 0; t < part.tables.size(); ++t) {
    const uint32_t input = part.input[t];
    const size_t floats = part.tables[t].row_floats;
    CHECK_EQ(values[input].size(), orders_[order_of_input_[input]].num_keys * floats);
    GatherRows(width_, {format, floats}, PositionsAt(server.value, input), values[input].data(),
               to);
    to += part.tables[t].num_keys * floats * FloatBytes(format);
  }
  return buffer;
}

Status KeySplit::CheckReply(ServerId server, PullMode mode, const PullReply& reply) const {
  if (reply.code != Code::kOk) return Status(reply.code, reply.message);
  const Part& part = parts_[server.value];
  const size_t num_tables = mode == PullMode::kAhead ? part.num_sparse : part.tables.size();
  if (reply.tables.size() != num_tables) {
    return UnlikeRequest(server, "the number of tables", reply.tables.size(), num_tables);
  }
  const std::span<const uint32_t> positions = reply.positions.As<uint32_t>();
  size_t num_positions = 0, num_floats = 0;
  for (size_t t = 0; t < num_tables; ++t) {
    const TableKeys& got = reply.tables[t];
    const TableKeys& wanted = part.tables[t];
    if (got.table != wanted.table) {
      return UnlikeRequest(server, "a table's number", got.table.value, wanted.table.value);
    }
    const bool some = mode == PullMode::kRepair && got.num_keys < wanted.num_keys;
    if (got.num_keys != wanted.num_keys && (!some || t >= part.num_sparse)) {
      return UnlikeRequest(server, "the number of rows", got.num_keys, wanted.num_keys);
    }
    if (got.row_floats != wanted.row_floats) {
      return UnlikeRequest(server, "the floats of a row", got.row_floats, wanted.row_floats);
    }
    num_floats += size_t{got.num_keys} * got.row_floats;
    if (!some) continue;
    if (got.num_keys > positions.size() - num_positions) {
      return UnlikeRequest(server, "the number of positions", positions.size(),
                           num_positions + got.num_keys);
    }
    for (const uint32_t position : positions.subspan(num_positions, got.num_keys)) {
      if (position >= wanted.num_keys) {
        return UnlikeRequest(server, "a position", position, wanted.num_keys);
      }
    }
    num_positions += got.num_keys;
  }
  if (positions.size() != num_positions) {
    return UnlikeRequest(server, "the number of positions", positions.size(), num_positions);
  }
  const size_t bytes = num_floats * FloatBytes(reply.format);
  if (reply.rows.size() != bytes) {
    return UnlikeRequest(server, "the bytes of rows", reply.rows.size(), bytes);
  }
  return Status();
}

Status KeySplit::Scatter(ServerId server, PullMode mode, const PullReply& reply,
                         std::span<const std::span<float>> rows,
                         std::span<std::span<const float>> in_place) const {
  HDPS_RETURN_IF_ERROR(CheckReply(server, mode, reply));
  CHECK_EQ(rows.size(), order_of_input_.size());
  CHECK(in_place.empty() || in_place.size() == rows.size());
  const Part& part = parts_[server.value];
  const FloatFormat format = reply.format;
  std::vector<uint32_t> some;
  const std::byte* from = reply.rows.data();
  const uint32_t* position = reply.positions.As<uint32_t>().data();
  for (size_t t = 0; t < reply.tables.size(); ++t) {
    const uint32_t input = part.input[t];
    const size_t floats = part.tables[t].row_floats;
    const Order& order = orders_[order_of_input_[input]];
    const std::span<const uint32_t> places = PositionsAt(server.value, input);
    const size_t count = reply.tables[t].num_keys;
    const bool stays = !in_place.empty() && format == FloatFormat::kFp32 && order.in_order &&
                       count == order.num_keys;
    if (stays) {
      in_place[input] = {reinterpret_cast<const float*>(from), count * floats};
      from += count * floats * sizeof(float);
      continue;
    }
    CHECK_EQ(rows[input].size(), order.num_keys * floats);
    some.clear();
    if (count < places.size()) {
      for (size_t i = 0; i < count; ++i) some.push_back(places[*position++]);
    }
    ScatterRows(width_, {format, floats}, count == places.size() ? places : some, from,
                rows[input].data());
    from += count * floats * FloatBytes(format);
  }
  return Status();
}

std::vector<ServerRequest> Advances(uint32_t num_servers, Clock clock) {
  std::vector<ServerRequest> requests;
  for (uint32_t s = 0; s < num_servers; ++s)
    requests.push_back(RequestTo(s, AdvanceRequest{clock}));
  return requests;
}

}  // namespace hdps
