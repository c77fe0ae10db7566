// Writes the waiting rows of a shard when they fill its part of the memory.
#include "tools/export/shard_rows.h"

#include <algorithm>
#include <utility>

#include "common/base/shard_map.h"
#include "common/job/job_spec.h"
#include "common/job/spec/cluster_spec.h"
#include "common/job/spec/table_spec.h"
#include "common/job/table_slices.h"
#include "tools/export/read_bytes.h"

namespace hdps {

ShardRows::ShardRows(FileSystem& files, std::string path, const Job& job)
    : files_(files), path_(std::move(path)), job_(job), shards_(job.cluster.shards) {}

ShardRows::~ShardRows() {
  // A file that stays lies in the folder of a checkpoint that is none, and goes with it.
  static_cast<void>(files_.RemoveAll(path_));
}

Result<size_t> ShardRows::BeginGroup(TableId table) {
  HDPS_RETURN_IF_ERROR(WriteAll());
  groups_.push_back({table});
  return groups_.size() - 1;
}

Status ShardRows::Append(std::span<const Key> keys, std::span<const float> rows,
                         std::optional<uint32_t> shard) {
  Group& group = groups_.back();
  const TableSpec& spec = job_.tables[group.table.value];
  const auto num_shards = static_cast<uint32_t>(shards_.size());
  const uint32_t cuts = spec.row_slices(), dim = spec.slice_dim();
  const uint64_t row_bytes = sizeof(Key) + dim * sizeof(float);
  const uint64_t rows_max = std::max<uint64_t>(1, kWaitingBytes / num_shards / row_bytes);
  for (size_t k = 0; k < keys.size(); ++k) {
    for (uint32_t cut = 0; cut < cuts; ++cut) {
      const uint32_t home = shard      ? *shard
                            : cuts > 1 ? ColumnShard(keys[k], cut, cuts, num_shards)
                                       : ShardOf(keys[k], spec.shard_by, num_shards).value;
      Shard& to = shards_[home];
      const std::span<const float> part = rows.subspan(k * spec.dim + size_t{cut} * dim, dim);
      to.keys.push_back(keys[k]);
      to.weights.insert(to.weights.end(), part.begin(), part.end());
      ++group.appended;
      if (to.keys.size() >= rows_max) HDPS_RETURN_IF_ERROR(Write(&to));
    }
  }
  return {};
}

Status ShardRows::Write(Shard* shard) {
  if (shard->keys.empty()) return {};
  if (file_ == nullptr) {
    HDPS_ASSIGN_OR_RETURN(file_, files_.Create(path_));
  }
  const auto keys = std::as_bytes(std::span(shard->keys));
  const auto weights = std::as_bytes(std::span(shard->weights));
  HDPS_RETURN_IF_ERROR(file_->Append(keys));
  HDPS_RETURN_IF_ERROR(file_->Append(weights));
  shard->extents.push_back({groups_.size() - 1, bytes_, shard->keys.size()});
  bytes_ += keys.size() + weights.size();
  shard->keys.clear();
  shard->weights.clear();
  return {};
}

Status ShardRows::WriteAll() {
  for (Shard& shard : shards_) HDPS_RETURN_IF_ERROR(Write(&shard));
  return {};
}

Status ShardRows::Finish() {
  HDPS_RETURN_IF_ERROR(WriteAll());
  for (Shard& shard : shards_) {
    shard.keys = {};
    shard.weights = {};
  }
  if (file_ == nullptr) return {};
  HDPS_RETURN_IF_ERROR(file_->Close());
  file_.reset();
  HDPS_ASSIGN_OR_RETURN(reader_, files_.OpenSequential(path_));
  return {};
}

Status ShardRows::StoreInto(uint32_t shard, std::vector<TableSlice>* slices) {
  std::vector<Key> keys;
  std::vector<float> weights;
  for (const Extent& extent : shards_[shard].extents) {
    Group& group = groups_[extent.group];
    TableSlice& slice = (*slices)[group.table.value];
    keys.resize(extent.rows);
    weights.resize(extent.rows * slice.dim());
    HDPS_RETURN_IF_ERROR(
        ReadBytes(*reader_, path_, extent.begin, std::as_writable_bytes(std::span(keys))));
    HDPS_RETURN_IF_ERROR(ReadBytes(*reader_, path_, extent.begin + keys.size() * sizeof(Key),
                                   std::as_writable_bytes(std::span(weights))));
    const uint64_t before = slice.num_rows();
    slice.Store(keys, slice.dim(), weights);
    HDPS_RETURN_IF_ERROR(slice.failure());
    group.made += slice.num_rows() - before;
  }
  return {};
}

uint64_t ShardRows::Repeats(size_t group) const {
  const Group& of = groups_[group];
  return (of.appended - of.made) / job_.tables[of.table.value].row_slices();
}

}  // namespace hdps
