// Implements the checks and their messages.
#include "embedding/snapshot/snapshot_checks.h"

#include "kernels/host/finite.h"

namespace hdps {
namespace {

std::string Describe(const SnapshotHeader& header) {
  return "shard " + std::to_string(header.shard.value) + " at clock " +
         std::to_string(header.clock) +
         (header.is_delta() ? " on clock " + std::to_string(header.base) : "");
}

}  // namespace

Status SnapshotExpectation::CheckHeader(const SnapshotHeader& found, uint32_t num_tables) const {
  if (found.tables_digest != expected_.tables_digest || found.num_shards != expected_.num_shards ||
      num_tables != parts_.size()) {
    return {Code::kInvalidArgument,
            path_ + ": written by another job (" + std::to_string(num_tables) + " tables in " +
                std::to_string(found.num_shards) + " shards, this job has " +
                std::to_string(parts_.size()) + " in " + std::to_string(expected_.num_shards) +
                ", or their names, dims, rules or seed differ); give the job it was trained with"};
  }
  return CheckPlace(found);
}

Status SnapshotExpectation::CheckPlace(const SnapshotHeader& found) const {
  if (found.tables_digest != expected_.tables_digest || found.num_shards != expected_.num_shards) {
    return Broken("written by another job than the manifest is of");
  }
  if (found.shard != expected_.shard || found.clock != expected_.clock ||
      found.base != expected_.base) {
    return Broken("holds " + Describe(found) + ", expected " + Describe(expected_));
  }
  return {};
}

Status SnapshotExpectation::CheckTable(uint32_t t, const std::string& name, uint32_t dim,
                                       uint32_t state_floats) const {
  const SnapshotPart& part = parts_[t];
  if (name == part.name && dim == part.dim && state_floats == part.state_floats) return {};
  return {Code::kInvalidArgument, path_ + ": table " + std::to_string(t) + " is '" + name +
                                      "', this job's is '" + part.name +
                                      "', or their dims or rules differ"};
}

Status SnapshotExpectation::CheckRows(uint32_t t, std::span<const Key> keys,
                                      std::span<const float> rows) const {
  const SnapshotPart& part = parts_[t];
  if (part.kind != PartKind::kSketch && part.shard_by != ShardBy::kGiven) {
    for (const Key key : keys) {
      const ShardId shard = ShardOf(key, part.shard_by, expected_.num_shards);
      if (shard != expected_.shard) {
        return Broken("key " + std::to_string(key) + " of table '" + part.name +
                      "' belongs to shard " + std::to_string(shard.value));
      }
    }
  }
  return part.kind == PartKind::kRows ? CheckWeights(part.name, part.dim, keys, rows) : Status();
}

Status SnapshotExpectation::CheckWeights(const std::string& table, uint32_t dim,
                                         std::span<const Key> keys,
                                         std::span<const float> rows) const {
  if (FirstNotFinite(rows) == rows.size()) return {};
  const size_t row_floats = rows.size() / keys.size();
  for (size_t i = 0; i < keys.size(); ++i) {
    const std::span<const float> weights = rows.subspan(i * row_floats, dim);
    if (FirstNotFinite(weights) == weights.size()) continue;
    return Broken("a weight of key " + std::to_string(keys[i]) + " of table '" + table +
                  "' is no finite number");
  }
  return {};
}

}  // namespace hdps
