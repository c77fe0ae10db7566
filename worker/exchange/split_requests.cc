// The requests of a split, and the way back of their answers.
#include <glog/logging.h>

#include <string>
#include <utility>

#include "worker/exchange/key_split.h"
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

std::vector<ServerRequest> KeySplit::Pulls(const PullTerms& terms) const {
  std::vector<ServerRequest> requests;
  for (uint32_t s = 0; s < num_servers(); ++s) {
    const Part& part = parts_[s];
    if (part.tables.empty() || (terms.mode == PullMode::kPrefetch && part.num_sparse == 0))
      continue;
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
    pull.mode = read ? PullMode::kRefresh : PullMode::kTrain;
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
    requests.push_back(
        PushTo(ServerId{s}, terms, Gather(ServerId{s}, gradients, terms.format, make)));
  }
  return requests;
}

KeySplit::OpenSections KeySplit::OpenPush(const MakeBytes& make) const {
  OpenSections open;
  open.places.resize(num_tables());
  for (uint32_t s = 0; s < num_servers(); ++s) {
    const Part& part = parts_[s];
    const size_t size = part.num_floats * sizeof(float);
    auto& [buffer, bytes] = open.of.emplace_back();
    buffer = make ? make(ServerId{s}, size, &bytes) : Buffer::Allocate(size, &bytes);
    auto* place = reinterpret_cast<float*>(bytes.data());
    for (size_t t = 0; t < part.tables.size(); ++t) {
      const size_t floats = size_t{part.tables[t].num_keys} * part.tables[t].row_floats;
      if (InPieces(part.input[t])) open.places[part.input[t]].Append({place, floats});
      place += floats;
    }
  }
  return open;
}

std::vector<ServerRequest> KeySplit::ClosePush(const PushTerms& terms,
                                               std::span<const std::span<const float>> gradients,
                                               OpenSections open) const {
  CHECK(terms.format == DType::kFp32 && open.of.size() == num_servers());
  std::vector<ServerRequest> requests;
  for (uint32_t s = 0; s < num_servers(); ++s) {
    auto& [buffer, bytes] = open.of[s];
    GatherInto(ServerId{s}, gradients, terms.format, open.places, bytes.data());
    requests.push_back(PushTo(ServerId{s}, terms, std::move(buffer)));
  }
  return requests;
}

ServerRequest KeySplit::PushTo(ServerId server, const PushTerms& terms, Buffer gradients) const {
  const Part& part = parts_[server.value];
  const bool named = terms.list != 0 && !part.tables.empty();
  PushRequest push;
  push.sequence = terms.sequence;
  push.clock = terms.clock;
  push.num_examples = terms.num_examples;
  push.list = named ? terms.list : 0;
  push.format = terms.format;
  push.gradients = std::move(gradients);
  ServerRequest request = {server, Frame()};
  if (named) request.frame = EncodeMessage(push);
  push.tables = part.tables;
  push.keys = part.keys;
  (named ? request.whole.emplace() : request.frame) = EncodeMessage(push);
  return request;
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
                        DType format, const MakeBytes& make) const {
  const size_t size = parts_[server.value].num_floats * FloatBytes(format);
  std::span<std::byte> section;
  Buffer buffer = make ? make(server, size, &section) : Buffer::Allocate(size, &section);
  GatherInto(server, values, format, {}, section.data());
  return buffer;
}

void KeySplit::GatherInto(ServerId server, std::span<const std::span<const float>> values,
                          DType format, std::span<const RowSpans<float>> places,
                          std::byte* to) const {
  CHECK_EQ(values.size(), order_of_input_.size());
  const Part& part = parts_[server.value];
  for (size_t t = 0; t < part.tables.size(); ++t) {
    const uint32_t input = part.input[t];
    const size_t floats = part.tables[t].row_floats;
    const size_t bytes = part.tables[t].num_keys * floats * FloatBytes(format);
    if (places.empty() || places[input].empty()) {
      CHECK_EQ(values[input].size(), orders_[order_of_input_[input]].num_keys * floats);
      GatherRows(width_, {format, floats}, PositionsAt(server.value, input), values[input].data(),
                 to);
    }
    to += bytes;
  }
}

Status KeySplit::CheckReply(ServerId server, PullMode mode, const PullReply& reply) const {
  if (reply.code != Code::kOk) return Status(reply.code, reply.message);
  const Part& part = parts_[server.value];
  const size_t num_tables = mode == PullMode::kPrefetch ? part.num_sparse : part.tables.size();
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
    const bool some = mode == PullMode::kRefresh && got.num_keys < wanted.num_keys;
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
                         std::span<RowSpans<const float>> in_place) const {
  HDPS_RETURN_IF_ERROR(CheckReply(server, mode, reply));
  CHECK_EQ(rows.size(), order_of_input_.size());
  CHECK(in_place.empty() || in_place.size() == rows.size());
  const Part& part = parts_[server.value];
  const DType format = reply.format;
  std::vector<uint32_t> some;
  const std::byte* from = reply.rows.data();
  const uint32_t* position = reply.positions.As<uint32_t>().data();
  for (size_t t = 0; t < reply.tables.size(); ++t) {
    const uint32_t input = part.input[t];
    const size_t floats = part.tables[t].row_floats;
    const Order& order = orders_[order_of_input_[input]];
    const std::span<const uint32_t> places = PositionsAt(server.value, input);
    const size_t count = reply.tables[t].num_keys;
    if (!in_place.empty() && format == DType::kFp32 && InPieces(input)) {
      CHECK(count == places.size() && in_place[input].size() == places.front() * floats);
      in_place[input].Append({reinterpret_cast<const float*>(from), count * floats});
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
