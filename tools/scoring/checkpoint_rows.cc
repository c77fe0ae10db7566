// Finds rows of a checkpoint's model by key, wherever they are held.
#include <algorithm>
#include <optional>
#include <span>
#include <vector>

#include "common/base/shard_map.h"
#include "common/job/job_spec.h"
#include "common/job/spec/table_spec.h"
#include "common/job/table_slices.h"
#include "common/telemetry/process_usage.h"
#include "tools/scoring/checkpoint_model.h"
#include "worker/dense/dense_state.h"

namespace hdps {

uint32_t CheckpointModel::ShardOfRow(const TableSpec& table, Key key, uint32_t slice,
                                     std::optional<uint32_t> field_shard) const {
  const auto num_shards = static_cast<uint32_t>(shards_.size());
  if (field_shard) return *field_shard;
  if (const uint32_t slices = table.row_slices(); slices > 1) {
    return ColumnShard(key, slice, slices, num_shards);
  }
  return ShardOf(key, table.shard_by, num_shards).value;
}

uint32_t CheckpointModel::ShardOfPart(const TableSpec& table, std::span<const Key> keys,
                                      std::span<const uint32_t> field_shards, size_t i) const {
  const uint32_t slices = table.row_slices();
  const size_t k = i / slices;
  return ShardOfRow(table, keys[k], static_cast<uint32_t>(i % slices),
                    field_shards.empty() ? std::nullopt : std::optional(field_shards[k]));
}

std::optional<uint32_t> CheckpointModel::Shard::RowNumber(TableId table, Key key) const {
  const Int8Rows* const of_table = rounded[table.value].get();
  return of_table != nullptr ? of_table->RowNumber(key) : flat->rows(table).Find(key);
}

std::optional<CheckpointModel::RowPlace> CheckpointModel::FindRow(
    TableId table, Key key, std::optional<uint32_t> field_shard) const {
  const TableSpec& spec = job_.tables[table.value];
  std::optional<RowPlace> first;
  for (uint32_t slice = 0; slice < spec.row_slices(); ++slice) {
    const uint32_t shard = ShardOfRow(spec, key, slice, field_shard);
    const std::optional<uint32_t> row = shards_[shard].RowNumber(table, key);
    if (!row) return std::nullopt;
    if (slice == 0) first = {shard, *row};
  }
  return first;
}

uint64_t CheckpointModel::Shard::NumRows(TableId table) const {
  const Int8Rows* const of_table = rounded[table.value].get();
  return of_table != nullptr ? of_table->num_rows() : flat->rows(table).num_rows();
}

void CheckpointModel::KeepMemoryBelow(uint64_t bytes, FileSystem& files) {
  memory_limit_ = bytes;
  memory_files_ = &files;
}

void CheckpointModel::NoteMapped(uint32_t rows) {
  // The system maps up to so many bytes around a page that is touched: a huge page of its cache.
  constexpr uint64_t kBytesOfRead = 2 << 20;
  const uint64_t eighth = memory_limit_ / 8;
  if ((mapped_reads_ += rows) * kBytesOfRead < eighth) return;
  mapped_reads_ = 0;
  if (ResidentBytes(*memory_files_) + eighth >= memory_limit_) DropMapped();
}

void CheckpointModel::DropMapped() {
  for (Shard& shard : shards_) shard.flat->DropMapped();
}

template <typename Use>
void CheckpointModel::ReadFlat(TableId table, std::span<const Key> keys,
                               std::span<const uint32_t> field_shards, std::span<float> rows,
                               const Use& use) {
  constexpr size_t kPartsAtOnce = 512;
  constexpr uint32_t kRowsNoted = 8;
  const TableSpec& spec = job_.tables[table.value];
  const uint32_t dim = spec.slice_dim(), slices = spec.row_slices();
  const size_t parts = keys.size() * slices;
  const FlatRows* of[kPartsAtOnce];
  Key key_of[kPartsAtOnce];
  for (size_t begin = 0; begin < parts; begin += kPartsAtOnce) {
    const size_t n = std::min(kPartsAtOnce, parts - begin);
    for (size_t i = 0; i < n; ++i) {
      of[i] = &shards_[ShardOfPart(spec, keys, field_shards, begin + i)].flat->rows(table);
      key_of[i] = keys[(begin + i) / slices];
    }
    FlatRows::ForEachFound({of, n}, {key_of, n}, [&](size_t i, const std::byte* row) {
      if (memory_limit_ > 0 && i % kRowsNoted == 0) NoteMapped(kRowsNoted);
      if (row != nullptr) of[i]->ReadWeightsOf(row, rows.subspan((begin + i) * dim, dim));
      use(begin + i, row != nullptr);
    });
  }
}

template <typename Use>
void CheckpointModel::ReadParts(TableId table, std::span<const Key> keys,
                                std::span<const uint32_t> field_shards, RowView view,
                                std::span<float> rows, const Use& use) {
  const bool staged = view == RowView::kStaged;
  // Tables are rounded in all shards or in none.
  const bool rounded = shards_.front().rounded[table.value] != nullptr;
  if (!staged && !rounded) return ReadFlat(table, keys, field_shards, rows, use);
  const TableSpec& spec = job_.tables[table.value];
  const uint32_t dim = spec.slice_dim(), slices = spec.row_slices();
  for (size_t i = 0; i < keys.size() * slices; ++i) {
    const uint32_t s = ShardOfPart(spec, keys, field_shards, i);
    const Key key = keys[i / slices];
    const std::span<float> row = rows.subspan(i * dim, dim);
    if (staged) {
      const std::byte* const found = staged_[s][table.value].Find(key);
      if (found != nullptr) shards_[s].flat->rows(table).ReadWeightsOf(found, row);
      use(i, found != nullptr);
    } else {
      use(i, shards_[s].rounded[table.value]->Read(key, row));
    }
  }
}

void CheckpointModel::Read(TableId table, std::span<const Key> keys,
                           std::span<const uint32_t> field_shards, std::span<float> rows,
                           std::span<uint8_t> has_row, RowView view) {
  const TableSpec& spec = job_.tables[table.value];
  const uint32_t dim = spec.slice_dim(), slices = spec.row_slices();
  const bool zeros = unknown_ == UnknownKeys::kZero && !spec.dense;
  std::ranges::fill(has_row, uint8_t{1});
  ReadParts(table, keys, field_shards, view, rows, [&](size_t i, bool found) {
    if (found) return;
    if (!has_row.empty()) has_row[i / slices] = 0;
    const std::span<float> row = rows.subspan(i * dim, dim);
    if (zeros) {
      std::ranges::fill(row, 0.0f);
    } else {
      const uint32_t s = ShardOfPart(spec, keys, field_shards, i);
      shards_[s].flat->ReadInitial(table, keys[i / slices], row);
    }
  });
}

std::vector<float> CheckpointModel::DenseWeights(RowView view) {
  std::vector<float> weights(model_->dense_floats());
  if (weights.empty()) return weights;
  const TableId dense{static_cast<uint32_t>(job_.tables.size() - 1)};
  Read(dense, DenseKeys(model_->tensors()), {}, weights, {}, view);
  return weights;
}

}  // namespace hdps
