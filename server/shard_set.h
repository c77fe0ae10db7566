// All shards of one group at one server, worked on in parallel.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "common/net/section_allocator.h"
#include "common/platform/executor.h"
#include "common/platform/file_system.h"
#include "server/request_plan.h"
#include "server/shard.h"

namespace hdps {

struct CheckpointPart;
struct Command;
struct InitMatch;
struct Job;
struct StoreRequest;

// Shards that move to a server, filled while their rows are still changed at another one, and the
// clocks of the copies that they hold.
struct ArrivedShard {
  std::unique_ptr<Shard> shard;
  Clock clock = 0;
};
using ArrivedShards = std::map<ShardId, ArrivedShard>;

// Every call runs one task a shard on the executor and returns when all are done, so no two tasks
// ever touch one shard. Results do not depend on the number of threads.
class ShardSet {
 public:
  // `memory`: null without a limit; otherwise it must outlive the set, and two sets of the same
  // shards must not both have rows. Shards that `before` also has are moved out of it with their
  // rows; null: all begin empty.
  ShardSet(const Job& job, Executor& executor, const std::vector<ShardId>& shards,
           ServerMemoryLimit* memory = nullptr, std::unique_ptr<ShardSet> before = nullptr);

  const std::vector<ShardId>& ids() const { return ids_; }
  // As TablesThatShareRows() of the job.
  std::span<const uint32_t> first_of_group() const { return first_of_group_; }

  // As in Shard, over all shards; return the first failure in their order.
  Status CheckKeys(const RequestPlan& plan, const Buffer& keys) const;
  Status CheckFloats(const RequestPlan& plan, const Buffer& keys, const Buffer& values,
                     DType format = DType::kFp32) const;
  // The destination of a read: numbers of `format`, in a section of `source` for `to`, or on the
  // heap if `source` is null.
  struct RowSection {
    DType format = DType::kFp32;
    SectionAllocator* source = nullptr;
    PeerId to;
  };
  // Returns the rows in the order of the keys.
  Buffer Read(const RequestPlan& plan, const Buffer& keys, const RowSection& section);
  // The dense rows, and of other tables the rows that a step after `since` changed, as in
  // PullReply.
  struct Changes {
    std::vector<uint32_t> num_rows;  // [tables of the plan]
    Buffer rows, positions;
  };
  Changes ReadChanged(const RequestPlan& plan, const Buffer& keys, int64_t since,
                      const RowSection& section);
  // Sets rows, as a change of the step of the request's clock.
  void Store(const RequestPlan& plan, const StoreRequest& request);
  // Applies the pushes of one step, in the order in which they are added up.
  void Apply(std::span<const PlannedPush> pushes, float scale, int64_t step,
             const UpdateTerms& terms);
  // Returns the squares of the gradients that Apply would use, before clipping.
  SquareSum Squares(std::span<const PlannedPush> pushes, float scale);

  // Ends a step whose updates were all applied; steps come in order.
  void EndStep(int64_t step);

  // Between steps: evicts rows of each table that no step after last[table] has updated, as a
  // change of `step`; 0: none. Requires: such tables evict by age.
  void EvictUntil(std::span<const Clock> last, int64_t step);

  Result<RowsDigest> Digest() const;
  size_t bytes() const;
  // Returns for each shard, in the order of ids(), what it takes: its memory, or the copy that
  // would move it if that is larger.
  std::vector<size_t> BytesOfShards() const;
  RowCounts counters() const;
  // Calls visit(slice) for the slices of one table, on this thread.
  template <typename Visit>
  void VisitTable(TableId table, const Visit& visit) const {
    for (const Shard& shard : shards_) visit(shard.table(table.value));
  }
  // The failure of the disk, if there was one; no request may be answered then.
  Status failure() const;
  // Saves one file a shard, in the order of the shards. `which`, if not empty, selects shards that
  // move to another server; their files need not survive a crash of the machine. `since` as in
  // Shard.
  Result<std::vector<SavedFile>> Save(FileSystem& files, const std::string& folder, Clock clock,
                                      Clock since = 0, const std::vector<ShardId>& which = {});
  // The shard of this number; null if it is not here.
  Shard* Find(ShardId id);
  // Returns an empty shard like those here, which is no part of the set yet.
  std::unique_ptr<Shard> NewShard(const Job& job, ShardId id) const;
  // Saves by copying as far as `budget` allows; the other shards are written at once.
  struct Taken {
    std::vector<TakenSnapshot> snapshots;
    std::vector<SavedFile> files;
  };
  Result<Taken> Take(FileSystem& files, const std::string& folder, Clock clock, Clock since,
                     CopyBudget* budget);
  // For tests: the next save with this `since` leaves out removed rows.
  void ForgetErased(Clock since);
  // Loads all shards from a checkpoint. Requires: all are empty, and `job` is that of the set.
  // kNotFound or kCorruption if the checkpoint is not whole, kInvalidArgument if it is another
  // job's. The set must not be used after a failure.
  Status Load(FileSystem& files, const Job& job, const std::string& folder, Clock clock);
  // Takes the rows of a checkpoint of any job that MatchInit() pairs with those of `job`, whatever
  // its number of shards. Requires: all are empty. Errors: kNotFound or kCorruption if the
  // checkpoint is not whole; the set must not be used then.
  Status LoadInit(FileSystem& files, const Job& job, const std::string& folder);
  // Loads, for a kLoad with `keep`, those of its shards that are here. Requires: they are empty.
  // Files are read only once, because after a failure the job goes back to its checkpoint anyway.
  // `arrived` has the shards that came ahead, with the clocks of the copies that they are of; those
  // with a file of changes become part of the set.
  // `leave_changes`: for tests, the changes are not read.
  Status LoadFrom(FileSystem& files, const Command& load, ArrivedShards& arrived,
                  bool leave_changes = false);

 private:
  // Loads a checkpoint of `before`, a job that cuts the same tables in another way. Every server
  // reads all shards, one after another, and keeps the rows that are its own.
  Status LoadRecut(FileSystem& files, const Job& before, const std::vector<CheckpointPart>& chain);
  // Gives each table rows of its own, which are empty.
  void Separate();
  // Reads the shards of `source` and takes what is matched; one at a time where rows go from each
  // to many, or memory is limited.
  Status TakeInit(FileSystem& files, const Job& source, const InitMatch& match,
                  const std::vector<CheckpointPart>& chain);
  // Takes rows of one shard of `source` into shards that hold them here.
  Status TakeShard(FileSystem& files, const Job& source, const InitMatch& match,
                   const std::vector<CheckpointPart>& chain, ShardId from,
                   std::span<Shard> to) const;
  // Returns whether all rows that are taken lie in the same shard in both jobs.
  bool IsAligned(const Job& source, const InitMatch& match) const;
  // Loads the shards that the chain holds: all of them if it is a whole checkpoint.
  Status LoadChain(FileSystem& files, const std::vector<CheckpointPart>& chain,
                   IfDamaged if_damaged);
  static Status FirstFailure(const std::vector<Status>& statuses);  // Ok if all are.
  // Calls work(slot) for every shard, in parallel if it touches more than a few of `bytes`.
  void ForEachShard(size_t bytes, const std::function<void(size_t)>& work) const;

  Executor& executor_;
  const ServerMemoryLimit* const memory_;  // May be null.
  const uint64_t tables_digest_;
  const std::vector<uint32_t> first_of_group_;  // TablesThatShareRows().
  const uint32_t num_shards_;                   // Number of shards of the job.
  const bool evicts_;                           // Some table's policy evicts rows.
  const std::vector<ShardId> ids_;              // Ascending, the order in which requests list them.
  std::vector<Shard> shards_;
  const VectorWidth width_ = WidestVectors();
  std::vector<Shard::Changed> changed_;  // [shards, tables of a request]; kept to reuse its memory.
};

}  // namespace hdps
