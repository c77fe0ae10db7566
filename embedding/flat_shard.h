// One shard of a checkpoint as FlatRows, brought from one checkpoint to the next by deltas.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "common/base/ids.h"
#include "common/base/status.h"
#include "common/platform/file_system.h"
#include "common/platform/seekable_file.h"
#include "embedding/flat_rows.h"
#include "embedding/snapshot/snapshot.h"
#include "embedding/table.h"

namespace hdps {

struct CheckpointPart;

// The rows of a shard's tables.
//
// Invariant: rows are those of one checkpoint, and change only in Publish(). One thread stages and
// publishes; any number of threads read meanwhile, except during Publish().
class FlatShard {
 public:
  // `empty` are the shard's slices, [tables], which stay without rows: they tell how tables are
  // saved, and initial values.
  FlatShard(ShardId shard, std::vector<TableSlice> empty);

  // Reads the shard as of the newest checkpoint of the chain, as ReadShard() does. After an error
  // rows may be incomplete. Takes the memory of the rows and of one block.
  Status Load(FileSystem& files, const std::vector<CheckpointPart>& chain);
  // Maps a file of WriteFlat(), as MapFlat() does.
  Status Map(FileSystem& files, const std::string& folder, const SavedFile& saved,
             const SnapshotHeader& expected);
  // Adds rows to a table, and makes it one without rows. Requires: nobody reads the shard yet, and
  // it is not mapped.
  Status Add(TableId table, std::span<const Key> keys, std::span<const float> weights);
  void Clear(TableId table);
  // Gives the memory of mapped rows back; they are read from the file again when they are needed.
  void DropMapped();

  // Reads what `delta` changes in the shard. Nobody sees it before Publish(). After an error
  // Discard() must follow, and leaves everything as it was.
  Status Stage(FileSystem& files, const CheckpointPart& delta);
  void Publish();
  void Settle();  // Must follow Publish(): frees memory, and may run beside readers.
  void Discard();

  std::vector<const FlatRows*> tables() const;
  const FlatRows& rows(TableId table) const { return *tables_[table.value]; }
  // Returns the rows of each table, [tables], as Publish() will make them.
  std::vector<FlatRows::Staged> staged() const;
  // Fills the weights of a key's row with their initial value.
  void ReadInitial(TableId table, Key key, std::span<float> row);

 private:
  using Tables = std::vector<std::unique_ptr<FlatRows>>;
  Tables NoRows() const;
  std::unique_ptr<FlatRows> NoRowsOf(const TableSlice& slice) const;
  std::vector<TableSlice*> Slices();

  const ShardId shard_;
  std::vector<TableSlice> empty_;
  std::shared_ptr<MappedFile> mapped_;  // Has rows of tables_; null: the shard was loaded.
  Tables tables_;                       // [tables]
  Tables replaced_;  // The next tables_, where a delta holds all rows of the shard; then the last.
};

}  // namespace hdps
