// Streams files into FlatRows: at once while a shard is loaded, staged while it is read by others.
#include "embedding/flat_shard.h"

#include <span>
#include <utility>

#include "common/job/spec/table_spec.h"
#include "common/protocol/manifest.h"
#include "embedding/flat_file.h"
#include "embedding/snapshot/row_taker.h"

namespace hdps {
namespace {

// Publishes rows as they come, so that nothing is held twice. For rows that nobody reads yet.
class LoadedRows : public RowTaker {
 public:
  explicit LoadedRows(FlatRows& rows) : rows_(rows) {}

  Status Begin(uint64_t rows) override { return rows_.Begin(rows); }
  Status Store(std::span<const Key> keys, std::span<const float> rows) override {
    HDPS_RETURN_IF_ERROR(rows_.Store(keys, rows));
    Publish();
    return {};
  }
  void Erase(std::span<const Key> keys) override {
    rows_.Erase(keys);
    Publish();
  }

 private:
  void Publish() {
    rows_.Publish();
    rows_.Settle();
  }

  FlatRows& rows_;
};

// Reads a shard into tables that nobody reads yet.
Status LoadTables(FileSystem& files, const std::vector<CheckpointPart>& chain, ShardId shard,
                  const std::vector<TableSlice*>& slices,
                  std::span<const std::unique_ptr<FlatRows>> tables) {
  std::vector<LoadedRows> loaded;
  loaded.reserve(tables.size());
  std::vector<RowTaker*> takers;
  for (const auto& rows : tables) takers.push_back(&loaded.emplace_back(*rows));
  return ReadShard(files, chain, shard, slices, takers);
}

}  // namespace

FlatShard::FlatShard(ShardId shard, std::vector<TableSlice> empty)
    : shard_(shard), empty_(std::move(empty)), tables_(NoRows()) {}

std::unique_ptr<FlatRows> FlatShard::NoRowsOf(const TableSlice& slice) const {
  return std::make_unique<FlatRows>(slice.spec().weights, slice.dim());
}

FlatShard::Tables FlatShard::NoRows() const {
  Tables tables;
  for (const TableSlice& slice : empty_) tables.push_back(NoRowsOf(slice));
  return tables;
}

Status FlatShard::Add(TableId table, std::span<const Key> keys, std::span<const float> weights) {
  LoadedRows loaded(*tables_[table.value]);
  HDPS_RETURN_IF_ERROR(loaded.Begin(keys.size()));
  return loaded.Store(keys, weights);
}

void FlatShard::Clear(TableId table) { tables_[table.value] = NoRowsOf(empty_[table.value]); }

std::vector<TableSlice*> FlatShard::Slices() {
  std::vector<TableSlice*> slices;
  for (TableSlice& slice : empty_) slices.push_back(&slice);
  return slices;
}

Status FlatShard::Load(FileSystem& files, const std::vector<CheckpointPart>& chain) {
  return LoadTables(files, chain, shard_, Slices(), tables_);
}

std::vector<const FlatRows*> FlatShard::tables() const {
  std::vector<const FlatRows*> tables;
  for (const auto& rows : tables_) tables.push_back(rows.get());
  return tables;
}

std::vector<FlatRows::Staged> FlatShard::staged() const {
  std::vector<FlatRows::Staged> staged;
  for (const auto& rows : replaced_.empty() ? tables_ : replaced_) staged.emplace_back(*rows);
  return staged;
}

Status FlatShard::Map(FileSystem& files, const std::string& folder, const SavedFile& saved,
                      const SnapshotHeader& expected) {
  HDPS_ASSIGN_OR_RETURN(FlatTables mapped, MapFlat(files, folder, saved, expected, Slices()));
  mapped_ = std::move(mapped.file);
  tables_ = std::move(mapped.tables);
  return {};
}

void FlatShard::DropMapped() {
  if (mapped_ != nullptr) mapped_->Drop();
}

Status FlatShard::Stage(FileSystem& files, const CheckpointPart& delta) {
  if (HoldsAllRows(delta, shard_)) {
    replaced_ = NoRows();
    return LoadTables(files, {delta}, shard_, Slices(), replaced_);
  }
  std::vector<RowTaker*> takers;
  for (const auto& rows : tables_) takers.push_back(rows.get());
  return ReadDelta(files, delta, shard_, Slices(), takers);
}

void FlatShard::Publish() {
  if (!replaced_.empty()) return std::swap(tables_, replaced_);
  for (const auto& rows : tables_) rows->Publish();
}

void FlatShard::Settle() {
  replaced_.clear();
  for (const auto& rows : tables_) rows->Settle();
}

void FlatShard::Discard() {
  replaced_.clear();
  for (const auto& rows : tables_) rows->Discard();
}

void FlatShard::ReadInitial(TableId table, Key key, std::span<float> row) {
  TableSlice& slice = empty_[table.value];
  slice.Read({&key, 1}, slice.dim(), row);
}

}  // namespace hdps
