// One shard: its slice of every table of the job.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "common/platform/file_system.h"
#include "common/protocol/row_messages.h"
#include "embedding/shard_memory.h"
#include "embedding/snapshot/snapshot.h"
#include "embedding/table.h"
#include "kernels/vector_width.h"
#include "server/key_list_cache.h"
#include "server/request_plan.h"
#include "server/server_memory_limit.h"

namespace hdps {

struct Job;

// One worker's push, checked and cut by shard.
struct PlannedPush {
  PushRequest request;
  std::shared_ptr<const KeyList> list;  // The keys that it carries or names.
  float scale = 1;  // Factor of its gradients before they are added to the others'.
};

// Invariant: one task at a time changes a shard, and a shard holds only keys that ShardOf gives it.
class Shard {
 public:
  // `tables_digest`: TablesDigest() of the job, which takes longer than making a shard. `memory` is
  // null if there is no limit. `first_of_group`: TablesThatShareRows().
  Shard(const Job& job, uint64_t tables_digest, std::span<const uint32_t> first_of_group,
        ShardId id, ServerMemoryLimit* memory);

  ShardId id() const { return id_; }
  TableSlice& table(size_t t) { return tables_[t]; }
  const TableSlice& table(size_t t) const { return tables_[t]; }
  // Gives each table rows of its own, which are empty.
  void Separate();
  // As in TableSlice, for each of its tables.
  bool KeysAgree() const;

  // Returns whether every key of `pieces` belongs here. kCorruption names the table and the key.
  Status CheckKeys(std::span<const ShardPiece> pieces, const Buffer& keys) const;
  // Returns whether every one of `values` is finite; the error names the table, the key and the
  // value.
  Status CheckFloats(std::span<const ShardPiece> pieces, const Buffer& keys, DType format,
                     std::span<const std::byte> values) const;

  // Reads the rows of `pieces` into their places in `rows`, in `format`.
  void Read(std::span<const ShardPiece> pieces, const Buffer& keys, DType format,
            std::span<std::byte> rows);
  // The rows of a piece that a step after `since` changed: their positions among the piece's keys,
  // and their weights one behind the other. For a dense table `all` is set, and Read() gives the
  // rows.
  struct Changed {
    bool all = false;
    std::vector<uint32_t> positions;
    std::vector<float> weights;
  };
  void ReadChanged(std::span<const ShardPiece> pieces, const Buffer& keys, int64_t since,
                   std::span<Changed> changed);
  // Sets rows, as a change of `step`.
  void Store(std::span<const ShardPiece> pieces, const Buffer& keys, std::span<const float> rows,
             int64_t step);
  // Adds up the pushes in their order, times `scale`, and applies the sum once; `slot` is this
  // shard's position in their plans.
  void Apply(std::span<const PlannedPush> pushes, size_t slot, float scale, int64_t step,
             const UpdateTerms& terms);
  // Returns the squares of the gradients that Apply would use, before clipping.
  SquareSum Squares(std::span<const PlannedPush> pushes, size_t slot, float scale);

  // Ends a step whose updates were all applied.
  void EndStep(int64_t step);

  Result<RowsDigest> Digest() const;
  size_t bytes() const;
  RowCounts counters() const;
  // The failure of the disk, or of a limit of the rows, if there was one; no request may be
  // answered then.
  Status failure() const;
  void ForgetErased(Clock since);  // As in ShardSet.
  // Saves the shard. `since`, if not 0: saves only what changed since the checkpoint of that clock,
  // if every table knows it; the name of the file tells which of the two was saved.
  Result<SavedFile> Save(FileSystem& files, const std::string& folder, Clock clock, Clock since);
  // Copies the shard, to be written later. Returns none, and nothing counts as saved, if the copy
  // does not fit: see TakeSnapshot.
  Result<std::optional<TakenSnapshot>> Take(Clock clock, Clock since, CopyBudget* budget);
  // The same for a shard that moves to another server, in turns of these two: copies it while
  // requests go on, and saves what changed since the copy of clock `since` when they rest; 0, or
  // if that is not known: all of it. `clock`: no later request changes rows as of a step before it.
  Result<std::optional<TakenSnapshot>> TakeMoved(Clock clock, Clock since, CopyBudget* budget);
  Result<SavedFile> SaveMoved(FileSystem& files, const std::string& folder, Clock clock,
                              Clock since);
  // Loads such a copy. Requires: the shard is empty.
  Status LoadCopy(FileSystem& files, const std::string& folder, const SavedFile& copy, Clock clock);
  // Adds to a shard that holds a copy of clock `since` what has changed until `clock`.
  Status LoadMoved(FileSystem& files, const std::string& folder, const SavedFile& changes,
                   Clock clock, Clock since);
  // Loads the shard. Requires: it is empty. `chain`: as ReadChain returns it. Tables that share
  // rows are separated if they have other keys in the checkpoint than each other.
  Status Load(FileSystem& files, const std::vector<CheckpointPart>& chain,
              IfDamaged if_damaged = IfDamaged::kNothingIsStored);

 private:
  // This shard's gradients in the pushes, in their order and in 32 bits: [tables][pushes].
  using Parts = std::vector<std::vector<TableSlice::Gradients>>;
  Parts PartsOf(std::span<const PlannedPush> pushes, size_t slot);
  // Lets the next save be a delta since `clock`; called after everything was saved or loaded.
  void MarkSaved(Clock clock);
  std::vector<const TableSlice*> Slices() const;
  SnapshotHeader HeaderOf(Clock clock, Clock since) const;
  SnapshotHeader HeaderOfMove(Clock clock, Clock since) const;
  // Pieces of tables that share rows, for one range of keys.
  using JointPieces = std::span<const ShardPiece* const>;
  // Calls use(joint) once for each piece, together with those that it can be read with.
  void ForEachJoint(std::span<const ShardPiece> pieces,
                    const std::function<void(JointPieces joint)>& use) const;
  void ReadHalf(JointPieces pieces, const Buffer& keys, DType format, std::span<std::byte> rows);

  const ShardId id_;
  const uint64_t seed_;
  const uint32_t num_shards_;
  const uint64_t tables_digest_;
  const bool saves_deltas_;
  const VectorWidth width_ = WidestVectors();
  std::unique_ptr<ShardMemory> memory_;  // Null without a limit.
  std::vector<TableSlice> tables_;       // The slices use memory_.
  std::vector<float> wide_;              // 16-bit values widened to floats.
};

}  // namespace hdps
