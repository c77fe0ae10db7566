// Checks the tables of a request against the job, and cuts its sections by shard.
#include "server/request_plan.h"

#include <algorithm>
#include <string>

#include "common/job/job_spec.h"
#include "common/net/frame.h"
#include "common/protocol/row_messages.h"
#include "embedding/memory/row_policy.h"

namespace hdps {
namespace {

// `counts`: the keys of the table by shard.
Status CheckTable(const Job& job, OwnShards own_shards, RowShape shape, const TableKeys& table,
                  std::span<const uint32_t> counts) {
  if (table.table.value >= job.tables.size()) {
    return {Code::kCorruption, "table " + std::to_string(table.table.value) + ", the job has " +
                                   std::to_string(job.tables.size())};
  }
  const TableSpec& spec = job.tables[table.table.value];
  if (counts.size() != own_shards.count) {
    return {own_shards.moved ? Code::kStaleView : Code::kCorruption,
            "table '" + spec.name + "': keys for " + std::to_string(counts.size()) +
                " shards, this server holds " + std::to_string(own_shards.count)};
  }
  size_t keys = 0;
  for (const uint32_t count : counts) keys += count;
  if (keys != table.num_keys) {
    return {Code::kCorruption, "table '" + spec.name + "': " + std::to_string(keys) +
                                   " keys by shard, " + std::to_string(table.num_keys) + " in all"};
  }
  const uint32_t weights = spec.slice_dim();
  const uint32_t with_state = weights + RowStateFloats(spec);
  const bool fits = (shape != RowShape::kWithState && table.row_floats == weights) ||
                    (shape != RowShape::kWeights && table.row_floats == with_state);
  if (!fits) {
    return {Code::kCorruption,
            "table '" + spec.name + "': rows of " + std::to_string(table.row_floats) +
                " floats, expected " +
                std::to_string(shape == RowShape::kWithState ? with_state : weights)};
  }
  return {};
}

}  // namespace

void JoinKeys(std::span<const uint32_t> first_of_group, const Buffer& keys, RequestPlan* plan) {
  const auto group = [&](size_t t) { return first_of_group[plan->pieces[t].table.value]; };
  const auto pieces_of = [plan](size_t t) {
    std::vector<ShardPiece*> pieces;
    for (size_t i = t; i < plan->pieces.size(); i += plan->num_tables) {
      pieces.push_back(&plan->pieces[i]);
    }
    return pieces;
  };
  if (plan->pieces.empty()) return;
  for (size_t t = 1; t < plan->num_tables; ++t) {
    size_t of = 0;
    while (group(of) != group(t)) ++of;
    if (of == t) continue;
    const std::vector<ShardPiece*> from = pieces_of(of), to = pieces_of(t);
    const auto same = [&](const ShardPiece* a, const ShardPiece* b) {
      return a->SameKeysAs(*b) || std::ranges::equal(a->KeysIn(keys), b->KeysIn(keys));
    };
    if (!std::ranges::equal(from, to, same)) continue;
    for (size_t i = 0; i < to.size(); ++i) to[i]->key_begin = from[i]->key_begin;
  }
}

Status CheckJoined(const Job& job, std::span<const uint32_t> first_of_group,
                   const RequestPlan& plan) {
  for (size_t t = 0; t < first_of_group.size(); ++t) {
    const size_t first = first_of_group[t];
    if (first == t) continue;
    for (size_t slot = 0; slot * plan.num_tables < plan.pieces.size(); ++slot) {
      const std::span<const ShardPiece> pieces = plan.OfShard(slot);
      const auto find = [&](size_t table) {
        const auto at =
            std::ranges::find(pieces, TableId{static_cast<uint32_t>(table)}, &ShardPiece::table);
        return at == pieces.end() ? ShardPiece() : *at;
      };
      const ShardPiece a = find(first), b = find(t);
      if (a.num_keys == 0 && b.num_keys == 0) continue;
      if (a.SameKeysAs(b)) continue;
      return {Code::kCorruption, "tables '" + job.tables[first].name + "' and '" +
                                     job.tables[t].name +
                                     "' share rows, so they change for the same keys; this "
                                     "request has others for one than for the other"};
    }
  }
  return {};
}

RequestPlan WithoutDense(const Job& job, const RequestPlan& plan) {
  RequestPlan sparse = plan;
  // A dense table is the last of a job, so removing it moves no other rows.
  for (ShardPiece& piece : sparse.pieces) {
    if (!job.tables[piece.table.value].dense) continue;
    sparse.num_floats -= piece.num_keys * piece.row_floats;
    piece.num_keys = 0;
    piece.float_begin = 0;
  }
  return sparse;
}

Result<RequestPlan> PlanRequest(const Job& job, OwnShards own_shards, RowShape shape,
                                const std::vector<TableKeys>& tables) {
  RequestPlan plan;
  plan.num_tables = tables.size();
  plan.pieces.resize(own_shards.count * tables.size());
  size_t next_key = 0, rows = 0;
  for (size_t t = 0; t < tables.size(); ++t) {
    const TableKeys& table = tables[t];
    const size_t of = table.has_own_keys() ? t : table.keys_of - 1;
    const std::vector<uint32_t>& counts = tables[of].shard_counts;
    HDPS_RETURN_IF_ERROR(CheckTable(job, own_shards, shape, table, counts));
    for (size_t slot = 0; slot < own_shards.count; ++slot) {
      ShardPiece* const pieces = &plan.pieces[slot * plan.num_tables];
      const size_t num_keys = counts[slot];
      const size_t key_begin = of == t ? next_key : pieces[of].key_begin;
      pieces[t] = {table.table, key_begin, num_keys, plan.num_floats, table.row_floats};
      if (of == t) next_key += num_keys;
      rows += num_keys;
      plan.num_floats += num_keys * table.row_floats;
    }
  }
  // A reply may carry a position with each row, and a push of that many gradients carries its keys.
  const uint64_t reply_bytes =
      uint64_t{plan.num_floats} * sizeof(float) + uint64_t{rows} * sizeof(Key);
  if (reply_bytes > kFrameBytesMax - kEnvelopeBytesMax) {
    return Status(Code::kResourceExhausted,
                  "the rows of " + std::to_string(rows) + " keys are " +
                      std::to_string(reply_bytes >> 20) + " MiB, a frame holds at most " +
                      std::to_string((kFrameBytesMax - kEnvelopeBytesMax) >> 20) +
                      "; a smaller train.batch_size or more servers would do");
  }
  return plan;
}

}  // namespace hdps
