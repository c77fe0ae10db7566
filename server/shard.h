// One shard: its slice of every table of the job.
#pragma once

#include <memory>
#include <optional>
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
  std::shared_ptr<const KeyList> list;  // Its own keys, or those it named.
  float scale = 1;                      // Of its gradients before they are added to the others'.
};

// Invariant: one task at a time changes a shard, and a shard holds only keys that ShardOf gives it.
class Shard {
 public:
  // `tables_digest`: TablesDigest() of the job, which takes longer than making a shard.
  // `memory`: null where rows have all of the machine's.
  Shard(const Job& job, uint64_t tables_digest, ShardId id, ServerMemoryLimit* memory);

  ShardId id() const { return id_; }

  // Whether every key of `pieces` belongs here. kCorruption names the table and the key.
  Status CheckKeys(std::span<const ShardPiece> pieces, const Buffer& keys) const;
  // Whether every one of `values` is a finite number; names the table, the key and the value.
  Status CheckFloats(std::span<const ShardPiece> pieces, const Buffer& keys, DType format,
                     std::span<const std::byte> values) const;

  // Rows of `pieces` into their places in `rows`, numbers of `format`.
  void Read(std::span<const ShardPiece> pieces, const Buffer& keys, DType format,
            std::span<std::byte> rows);
  // Of each piece the rows that a step after `since` changed: where they stand among the piece's
  // keys, and their weights one behind the other. Of a dense table all, which are left to Read().
  struct Changed {
    bool all = false;
    std::vector<uint32_t> positions;
    std::vector<float> weights;
  };
  void ReadChanged(std::span<const ShardPiece> pieces, const Buffer& keys, int64_t since,
                   std::span<Changed> changed);
  // As a change of `step`.
  void Store(std::span<const ShardPiece> pieces, const Buffer& keys, std::span<const float> rows,
             int64_t step);
  // Adds up the pushes in their order, times `scale`, and applies them once; `slot` is this shard's
  // place in their plans.
  void Apply(std::span<const PlannedPush> pushes, size_t slot, float scale, int64_t step,
             const UpdateTerms& terms);
  // The squares of the gradients that this would apply, before they are clipped.
  SquareSum Squares(std::span<const PlannedPush> pushes, size_t slot, float scale);

  // All updates of `step` were applied.
  void EndStep(int64_t step);

  Result<RowsDigest> Digest() const;
  size_t bytes() const;
  RowCounts counters() const;
  // Of the disk, if it has failed, or of a limit of the rows that was hit: then nobody may be
  // answered.
  Status failure() const;
  void ForgetErased(Clock since);  // As in ShardSet.
  // `since`, not 0: only what changed since the checkpoint of that clock, where every table knows
  // it; the name of the file tells.
  Result<SavedFile> Save(FileSystem& files, const std::string& folder, Clock clock, Clock since,
                         Survives survives = Survives::kMachine);
  // The same into memory, to be written later. None, and nothing counts as saved, where it does not
  // fit: see TakeSnapshot.
  Result<std::optional<TakenSnapshot>> Take(Clock clock, Clock since, CopyBudget* budget);
  // Requires: the shard is empty. `chain`: as ReadChain gives it.
  Status Load(FileSystem& files, const std::vector<CheckpointPart>& chain,
              IfDamaged if_damaged = IfDamaged::kNothingIsStored);

 private:
  // Of this shard in the pushes, in their order and in 32 bits: [tables][pushes].
  using Parts = std::vector<std::vector<TableSlice::Gradients>>;
  Parts PartsOf(std::span<const PlannedPush> pushes, size_t slot);
  // The next save may tell what changed after `clock`, when everything is saved or loaded.
  void MarkSaved(Clock clock);
  std::vector<const TableSlice*> Slices() const;
  SnapshotHeader HeaderOf(Clock clock, Clock since) const;
  void ReadHalf(const ShardPiece& piece, const Buffer& keys, DType format,
                std::span<std::byte> rows);

  const ShardId id_;
  const uint32_t num_shards_;
  const uint64_t tables_digest_;
  const bool saves_deltas_;
  const VectorWidth width_ = WidestVectors();
  std::unique_ptr<ShardMemory> memory_;  // Null: none is limited.
  std::vector<TableSlice> tables_;       // Use it.
  std::vector<float> wide_;              // Numbers of 16 bits, as they are worked with.
};

}  // namespace hdps
