// All shards one server holds, worked on side by side.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "common/net/section_allocator.h"
#include "common/platform/executor.h"
#include "common/platform/file_system.h"
#include "server/request_plan.h"
#include "server/shard.h"

namespace hdps {

struct Command;
struct Job;
struct StoreRequest;

// Every call runs one task a shard on the executor and returns when all are done, so no two tasks
// ever touch one shard. Results do not depend on the number of threads.
class ShardSet {
 public:
  // `memory`: null where rows have all of the machine's; else it must outlive the set, and two sets
  // of the same shards may not both have rows.
  // Shards that `before` has too are taken out of it with their rows; null: all begin empty.
  ShardSet(const Job& job, Executor& executor, const std::vector<ShardId>& shards,
           ServerMemoryLimit* memory = nullptr, std::unique_ptr<ShardSet> before = nullptr);

  const std::vector<ShardId>& ids() const { return ids_; }

  // As in Shard, over all shards; the first failure in their order.
  Status CheckKeys(const RequestPlan& plan, const Buffer& keys) const;
  Status CheckFloats(const RequestPlan& plan, const Buffer& keys, const Buffer& values,
                     DType format = DType::kFp32) const;
  // What rows are read into: numbers of `format`, in a section of `source`, if there is one, for
  // `to`.
  struct RowSection {
    DType format = DType::kFp32;
    SectionAllocator* source = nullptr;
    PeerId to;
  };
  // The rows in the order of the keys.
  Buffer Read(const RequestPlan& plan, const Buffer& keys, const RowSection& section);
  // The dense rows, and of the others those that a step after `since` changed; as PullReply has
  // them.
  struct Changes {
    std::vector<uint32_t> num_rows;  // [tables of the plan]
    Buffer rows, positions;
  };
  Changes ReadChanged(const RequestPlan& plan, const Buffer& keys, int64_t since,
                      const RowSection& section);
  // What it sets counts as changed by the step of its clock: whoever read before knows nothing of
  // it.
  void Store(const RequestPlan& plan, const StoreRequest& request);
  // The pushes of one step, in the order they are to be added up.
  void Apply(std::span<const PlannedPush> pushes, float scale, int64_t step,
             const UpdateTerms& terms);
  // The squares of what that would apply, before they are clipped.
  SquareSum Squares(std::span<const PlannedPush> pushes, float scale);

  // All updates of `step` were applied; steps come in order.
  void EndStep(int64_t step);

  Result<RowsDigest> Digest() const;
  size_t bytes() const;
  RowCounts counters() const;
  // Of the disk, if it has failed: then nobody may be answered.
  Status failure() const;
  // One file a shard, in the order of the shards; only of those in `which`, if there are any: they
  // are on their way to another server, and need not survive a crash of the machine. `since` as in
  // Shard.
  Result<std::vector<SavedFile>> Save(FileSystem& files, const std::string& folder, Clock clock,
                                      Clock since = 0, const std::vector<ShardId>& which = {});
  // The same, but only copied, as far as `budget` allows: what is more is written at once.
  struct Taken {
    std::vector<TakenSnapshot> snapshots;
    std::vector<SavedFile> files;
  };
  Result<Taken> Take(FileSystem& files, const std::string& folder, Clock clock, Clock since,
                     CopyBudget* budget);
  // For tests: the next save with this `since` does not know which rows have left.
  void ForgetErased(Clock since);
  // Requires: all shards are empty, and `job` is that of the set. After a failure the set is good
  // for nothing.
  // kNotFound or kCorruption when the checkpoint is not whole, kInvalidArgument when it is another
  // job's.
  Status Load(FileSystem& files, const Job& job, const std::string& folder, Clock clock);
  // Of a kLoad with `keep`: loads those of its shards that are here from its files. Requires: they
  // are empty. After a failure the job goes back to its checkpoint, so they are read once.
  Status LoadFrom(FileSystem& files, const Command& load);

 private:
  // Those shards that the chain holds; all of them, where it is a whole checkpoint.
  Status LoadChain(FileSystem& files, const std::vector<CheckpointPart>& chain,
                   IfDamaged if_damaged);
  // work(slot) for every shard: side by side where it touches more than a few of `bytes`.
  void ForEachShard(size_t bytes, const std::function<void(size_t)>& work) const;

  Executor& executor_;
  const ServerMemoryLimit* const memory_;  // Or null.
  const uint64_t tables_digest_;
  const uint32_t num_shards_;       // Of the job.
  const bool evicts_;               // Some table's policy takes rows away.
  const std::vector<ShardId> ids_;  // Ascending, as requests count them.
  std::vector<Shard> shards_;
  const VectorWidth width_ = WidestVectors();
  std::vector<Shard::Changed> changed_;  // [shards, tables of a request], kept for its memory.
};

}  // namespace hdps
