// Makes one PullRequest a server, and puts the rows of each reply in place.
#include "worker/exchange/pull_plan.h"

#include <glog/logging.h>

#include <string>
#include <utility>

#include "common/protocol/message_frames.h"
#include "common/protocol/row_messages.h"
#include "worker/exchange/row_moves.h"

namespace hdps {
namespace {

Status UnlikeRequest(ServerId server, const std::string& what, uint64_t got, uint64_t wanted) {
  return Status(Code::kCorruption, "pull reply of server " + std::to_string(server.value) + ": " +
                                       what + " is " + std::to_string(got) + ", asked for " +
                                       std::to_string(wanted));
}

}  // namespace

std::vector<ServerRequest> PullPlan::Pull(const KeySplit& split, const PullTerms& terms) {
  split_ = &split;
  asked_.clear();
  std::vector<ServerRequest> requests;
  for (uint32_t s = 0; s < split.num_servers(); ++s) {
    const ServerKeys& its = split.at({s});
    if (its.tables.empty() || (terms.mode == PullMode::kPrefetch && its.num_sparse == 0)) continue;
    PullRequest pull;
    pull.clock = terms.clock;
    pull.mode = terms.mode;
    pull.pushed = terms.pushed;
    pull.list = terms.list;
    pull.format = terms.format;
    pull.part = terms.part;
    pull.tables = its.tables;
    pull.keys = its.keys;
    requests.push_back({ServerId{s}, EncodeMessage(pull), {}, terms.clock});
    asked_.push_back({ServerId{s}, terms.mode});
  }
  return requests;
}

std::vector<ServerRequest> PullPlan::Repair(const KeySplit& split, const RepairTerms& terms) {
  CHECK_EQ(terms.since.size(), split.num_servers());
  split_ = &split;
  asked_.clear();
  std::vector<ServerRequest> requests;
  for (uint32_t s = 0; s < split.num_servers(); ++s) {
    const ServerKeys& its = split.at({s});
    const bool read = terms.since[s] != kNotRead;
    const bool has_dense = its.tables.size() > its.num_sparse;
    if (its.tables.empty() || (read && !terms.changes && !has_dense)) continue;
    PullRequest pull;
    pull.clock = terms.clock;
    pull.mode = read ? PullMode::kRefresh : PullMode::kTrain;
    pull.pushed = terms.pushed;
    pull.list = terms.list;
    pull.format = terms.format;
    pull.part = terms.part;
    pull.since = read ? terms.since[s] : 0;
    ServerRequest request = {ServerId{s}, Frame(), {}, terms.clock};
    if (read) request.frame = EncodeMessage(pull);
    pull.tables = its.tables;
    pull.keys = its.keys;
    (read ? request.whole.emplace() : request.frame) = EncodeMessage(pull);
    requests.push_back(std::move(request));
    asked_.push_back({ServerId{s}, pull.mode});
  }
  return requests;
}

Status PullPlan::Check(const Asked& asked, const PullReply& reply) const {
  if (reply.code != Code::kOk) return Status(reply.code, reply.message);
  const auto& [server, mode] = asked;
  const ServerKeys& its = split_->at(server);
  const size_t num_tables = mode == PullMode::kPrefetch ? its.num_sparse : its.tables.size();
  if (reply.tables.size() != num_tables) {
    return UnlikeRequest(server, "the number of tables", reply.tables.size(), num_tables);
  }
  const std::span<const uint32_t> positions = reply.positions.As<uint32_t>();
  size_t num_positions = 0, num_floats = 0;
  for (size_t t = 0; t < num_tables; ++t) {
    const TableKeys& got = reply.tables[t];
    const TableKeys& wanted = its.tables[t];
    if (got.table != wanted.table) {
      return UnlikeRequest(server, "a table's number", got.table.value, wanted.table.value);
    }
    const bool some = mode == PullMode::kRefresh && got.num_keys < wanted.num_keys;
    if (got.num_keys != wanted.num_keys && (!some || t >= its.num_sparse)) {
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

Status PullPlan::Scatter(size_t i, const PullReply& reply, std::span<const std::span<float>> rows,
                         std::span<RowSpans<const float>> in_place) const {
  HDPS_RETURN_IF_ERROR(Check(asked_[i], reply));
  CHECK_EQ(rows.size(), split_->num_tables());
  CHECK(in_place.empty() || in_place.size() == rows.size());
  const ServerId server = asked_[i].server;
  const ServerKeys& its = split_->at(server);
  ReadMarks& marks = split_->NoteMarks(server);
  if (asked_[i].mode != PullMode::kRefresh) marks.rows = reply.mark;
  if (asked_[i].mode != PullMode::kPrefetch) marks.dense = reply.mark;
  const DType format = reply.format;
  std::vector<uint32_t> some;
  const std::byte* from = reply.rows.data();
  const uint32_t* position = reply.positions.As<uint32_t>().data();
  for (size_t t = 0; t < reply.tables.size(); ++t) {
    const uint32_t input = its.input[t];
    const size_t floats = its.tables[t].row_floats;
    const std::span<const uint32_t> places = split_->PositionsAt(server, input);
    const size_t count = reply.tables[t].num_keys;
    if (!in_place.empty() && format == DType::kFp32 && split_->IsContiguous(input)) {
      CHECK(count == places.size() && in_place[input].size() == places.front() * floats);
      in_place[input].Append({reinterpret_cast<const float*>(from), count * floats});
      from += count * floats * sizeof(float);
      continue;
    }
    CHECK_EQ(rows[input].size(), split_->KeysOfInput(input) * floats);
    some.clear();
    if (count < places.size()) {
      for (size_t k = 0; k < count; ++k) some.push_back(places[*position++]);
    }
    ScatterRows(split_->movers(), {format, floats}, count == places.size() ? places : some, from,
                rows[input].data());
    from += count * floats * FloatBytes(format);
  }
  return Status();
}

}  // namespace hdps
