// Loads a checkpoint and its model into one process, without servers, for evaluate and predict.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/base/shared_mutex.h"
#include "common/base/status.h"
#include "common/job/job_spec.h"
#include "common/platform/executor.h"
#include "common/platform/file_system.h"
#include "common/protocol/manifest.h"
#include "embedding/flat_shard.h"
#include "embedding/int8_rows.h"
#include "embedding/table.h"
#include "worker/model/model.h"

namespace hdps {

struct DataSpec;
struct Manifest;
class WantedKeys;
enum class WhichCheckpoint : uint8_t;

// Returns the tables of one shard of a checkpoint, [Job::tables], without rows.
std::vector<TableSlice> EmptySlices(const Job& job, const Manifest& manifest, ShardId shard);
// Reads one shard of a checkpoint of the job and returns its tables, [Job::tables].
Result<std::vector<TableSlice>> ReadShard(FileSystem& files, const FoundCheckpoint& checkpoint,
                                          const Job& job, ShardId shard);

// Opens the checkpoint that a flag or an argument names, as OpenCheckpoint does. A kNotFound also
// says what was expected.
Result<FoundCheckpoint> OpenNamedCheckpoint(FileSystem& files, const std::string& path,
                                            WhichCheckpoint which);

// Tells on stderr, if `found` is not the newest checkpoint, that it is the best one and how to take
// the newest.
void WarnUnlessNewest(const FoundCheckpoint& found);
// Warns on stderr of each checkpoint that is not whole, in whose place `found` is taken.
void WarnOfPassedOver(const FoundCheckpoint& found);
// Does both.
void TellWhichIsTaken(const FoundCheckpoint& found);

// How rows are held for scoring, without the optimizer's state: as FlatRows, which have the weights
// as they were saved and which deltas can change; or as Int8Rows where that takes less.
enum class RowForm : uint8_t { kFlat, kInt8 };
// How a key without a row reads: as its initial value, as in training, or as zeros, as in an
// exported table, which cannot hold initial values.
enum class UnknownKeys : uint8_t { kInitial, kZero };

// Which rows are read: those that answer, or what Apply() is about to put in their place.
enum class RowView : uint8_t { kPublished, kStaged };

// What else happens when a delta is taken; both may be empty.
struct DeltaHooks {
  // Called when all of the delta was read and checked, and nobody sees it yet: RowView::kStaged has
  // its rows. After an error the delta is not taken.
  std::function<Status()> staged;
  // Called at the moment from which on its rows are seen, with rows_mutex() held.
  std::function<void()> published;
};

// The model of one checkpoint and its rows, all or the wanted ones.
//
// Invariant: the rows are those of the checkpoint, or of kInt8 those rounded, and change only in
// Apply(); a key without a row here reads by UnknownKeys. Dense weights are not rounded, and a
// chunk of them without a row reads as its initial value in any case.
class CheckpointModel {
 public:
  // Takes `path` and `which` as OpenCheckpoint does. Returns kInvalidArgument if the checkpoint
  // belongs to a job with other tables than `job`; they may be cut in another way. `executor` helps
  // with loading, and with the model if that is on a GPU.
  static Result<std::unique_ptr<CheckpointModel>> Load(FileSystem& files, const Job& job,
                                                       const std::string& path,
                                                       WhichCheckpoint which, Executor& executor,
                                                       RowForm form = RowForm::kFlat);
  // The same for a checkpoint that was found and verified.
  static Result<std::unique_ptr<CheckpointModel>> Load(FileSystem& files, const Job& job,
                                                       const FoundCheckpoint& found,
                                                       Executor& executor, RowForm form);
  // The same with the rows of `wanted` and the dense weights alone. Needs the memory of these and
  // of one shard.
  static Result<std::unique_ptr<CheckpointModel>> LoadWanted(FileSystem& files, const Job& job,
                                                             const std::string& path,
                                                             WhichCheckpoint which,
                                                             Executor& executor,
                                                             const WantedKeys& wanted);

  // Returns the job of Load() with its tables cut over the shards as those of the checkpoint are.
  const Job& job() const { return job_; }

  // Sets how keys without a row read from now on; kInitial before the first call.
  void set_unknown_keys(UnknownKeys unknown) { unknown_ = unknown; }
  UnknownKeys unknown_keys() const { return unknown_; }

  // Computes on the calling thread alone if it is on the CPU.
  Model& model() { return *model_; }
  // Returns another such model, without weights, for one more thread.
  Result<std::unique_ptr<Model>> MakeModel() const;
  const FoundCheckpoint& checkpoint() const { return checkpoint_; }  // As it was loaded.

  // As RowScorer::Apply(). Dense weights of models stay: see DenseWeights().
  Status Apply(FileSystem& files, const CheckpointPart& delta, Executor& executor,
               const DeltaHooks& hooks = {});
  // Lets Apply() take deltas on `original`, of which the checkpoint is a copy.
  void TakeDeltasOn(const Manifest& original) { manifest_checksum_ = ManifestChecksum(original); }
  // Whoever reads rows while another thread may apply deltas holds this for reading: what is read
  // under one lock is of one step().
  SharedMutex& rows_mutex() const { return rows_mutex_; }
  // From now on gives the memory of mapped rows back whenever the process has more than about
  // `bytes`. Requires: nobody reads yet, and `files` outlives this object.
  void KeepMemoryBelow(uint64_t bytes, FileSystem& files);
  // Gives the memory of mapped rows back, while others may read.
  void DropMapped();
  Clock step() const { return step_; }  // Of the checkpoint whose rows are here.
  // The same of a view. That of kStaged may be asked in DeltaHooks::staged alone.
  Clock step(RowView view) const { return view == RowView::kStaged ? staged_step_ : step(); }

  // Copies the weights of `keys` into `rows`, [keys, dim]. `field_shards` has the shard of each key
  // if the table is cut by field, and is empty otherwise. `has_row`, [keys], if not empty, receives
  // 1 for each key with a row and 0 for the others. Several threads may read at once.
  void Read(TableId table, std::span<const Key> keys, std::span<const uint32_t> field_shards,
            std::span<float> rows, std::span<uint8_t> has_row = {},
            RowView view = RowView::kPublished);
  // A row's shard and its number there, which no other row of the table in the shard has.
  struct RowPlace {
    uint32_t shard = 0, row = 0;
  };
  // Returns the place of a key's row. If the table is cut by column, this is the row of the first
  // part. Returns nothing if the key has no row, or lacks that of a part. `field_shard` is the
  // key's shard if the table is cut by field.
  std::optional<RowPlace> FindRow(TableId table, Key key,
                                  std::optional<uint32_t> field_shard) const;
  std::vector<uint64_t> RowsOfTables() const;  // Number of rows of each table, [tables].
  // Bytes of the weights of a table's rows: as they are held here, and as they were saved.
  struct RowBytes {
    uint64_t held = 0, saved = 0;
  };
  std::vector<RowBytes> BytesOfTables() const;  // [tables]
  // Returns the dense weights as the model's flat array.
  std::vector<float> DenseWeights(RowView view = RowView::kPublished);

 private:
  // Rows of one shard. A table that is rounded has no rows in `flat`.
  struct Shard {
    std::unique_ptr<FlatShard> flat;
    std::vector<std::unique_ptr<Int8Rows>> rounded;  // [tables]; null: the table is as saved.
    // Returns the number of a key's row here, or nothing if there is none.
    std::optional<uint32_t> RowNumber(TableId table, Key key) const;
    uint64_t NumRows(TableId table) const;
  };

  CheckpointModel(const Job& job, RowForm form, Executor& executor)
      : job_(job), form_(form), executor_(executor) {}
  // Opens the checkpoint and makes the model, still without its weights.
  static Result<std::unique_ptr<CheckpointModel>> Open(const Job& job, const FoundCheckpoint& found,
                                                       Executor& executor, RowForm form);
  Status ReadShards(FileSystem& files, Executor& executor);
  Status ReadShardAs(FileSystem& files, ShardId id);
  // Checks that `delta` builds on the checkpoint whose rows are here.
  Status CheckBuildsOn(const CheckpointPart& delta) const;
  Status ReadWanted(FileSystem& files, ShardId id, const WantedKeys& wanted);
  void RoundRows(Shard* shard) const;
  // Calls use(i, whether the i-th part of [keys, slices] has a row), after its weights were copied.
  template <typename Use>
  void ReadParts(TableId table, std::span<const Key> keys, std::span<const uint32_t> field_shards,
                 RowView view, std::span<float> rows, const Use& use);
  // The same of rows as they are saved that are published.
  template <typename Use>
  void ReadFlat(TableId table, std::span<const Key> keys, std::span<const uint32_t> field_shards,
                std::span<float> rows, const Use& use);
  // Notes that so many mapped rows were read, and keeps the limit of memory.
  void NoteMapped(uint32_t rows);
  // Returns the shard with the part `slice` of a key's row.
  uint32_t ShardOfRow(const TableSpec& table, Key key, uint32_t slice,
                      std::optional<uint32_t> field_shard) const;
  // The same of part `i` of [keys, slices].
  uint32_t ShardOfPart(const TableSpec& table, std::span<const Key> keys,
                       std::span<const uint32_t> field_shards, size_t i) const;

  Job job_;
  const RowForm form_;
  Executor& executor_;
  UnknownKeys unknown_ = UnknownKeys::kInitial;
  FoundCheckpoint checkpoint_;
  const std::unique_ptr<Executor> alone_ = NewInlineExecutor();
  std::unique_ptr<Model> model_;
  std::vector<Shard> shards_;

  mutable SharedMutex rows_mutex_;
  std::atomic<Clock> step_ = kNoClock;
  uint64_t manifest_checksum_ = 0;  // Of the checkpoint whose rows are here; used by Apply() alone.

  std::vector<std::vector<FlatRows::Staged>> staged_;  // [shards][tables], in DeltaHooks::staged.
  Clock staged_step_ = kNoClock;                       // The same.

  uint64_t memory_limit_ = 0;  // Of the process; 0: none.
  FileSystem* memory_files_ = nullptr;
  std::atomic<uint64_t> mapped_reads_ = 0;  // Since the memory was looked at.
};

}  // namespace hdps
