// Checks the tables of a request against the job, and cuts its sections by shard.
#include "server/request_plan.h"

#include <string>

#include "common/job/job_spec.h"
#include "common/net/frame.h"
#include "common/protocol/row_messages.h"
#include "embedding/memory/row_policy.h"

namespace hdps {
namespace {

Status CheckTable(const Job& job, OwnShards own_shards, RowShape shape, const TableKeys& table) {
  if (table.table.value >= job.tables.size()) {
    return {Code::kCorruption, "table " + std::to_string(table.table.value) + ", the job has " +
                                   std::to_string(job.tables.size())};
  }
  const TableSpec& spec = job.tables[table.table.value];
  if (table.shard_counts.size() != own_shards.count) {
    return {own_shards.moved ? Code::kStaleView : Code::kCorruption,
            "table '" + spec.name + "': keys for " + std::to_string(table.shard_counts.size()) +
                " shards, this server holds " + std::to_string(own_shards.count)};
  }
  size_t keys = 0;
  for (const uint32_t count : table.shard_counts) keys += count;
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
  size_t keys = 0;
  for (size_t t = 0; t < tables.size(); ++t) {
    const TableKeys& table = tables[t];
    HDPS_RETURN_IF_ERROR(CheckTable(job, own_shards, shape, table));
    for (size_t slot = 0; slot < own_shards.count; ++slot) {
      const size_t num_keys = table.shard_counts[slot];
      plan.pieces[slot * plan.num_tables + t] = {table.table, keys, num_keys, plan.num_floats,
                                                 table.row_floats};
      keys += num_keys;
      plan.num_floats += num_keys * table.row_floats;
    }
  }
  // A reply may carry a position with each row, and a push of that many gradients carries its keys.
  const uint64_t reply_bytes =
      uint64_t{plan.num_floats} * sizeof(float) + uint64_t{keys} * sizeof(Key);
  if (reply_bytes > kFrameBytesMax - kEnvelopeBytesMax) {
    return Status(Code::kResourceExhausted,
                  "the rows of " + std::to_string(keys) + " keys are " +
                      std::to_string(reply_bytes >> 20) + " MiB, a frame holds at most " +
                      std::to_string((kFrameBytesMax - kEnvelopeBytesMax) >> 20) +
                      "; a smaller train.batch_size or more servers would do");
  }
  return plan;
}

}  // namespace hdps
