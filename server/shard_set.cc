// Spreads requests, digests and checkpoints over the shards of a server.
#include "server/shard_set.h"

#include <unordered_map>
#include <utility>

#include "common/manifest.h"
#include "embedding/snapshot.h"

namespace hdps {
namespace {

Status FirstFailure(const std::vector<Status>& statuses) {
  for (const Status& status : statuses) {
    if (!status.ok()) return status;
  }
  return {};
}

}  // namespace

ShardSet::ShardSet(const Job& job, Executor& executor, const std::vector<ShardId>& shards)
    : executor_(executor), tables_digest_(TablesDigest(job)), ids_(shards) {
  shards_.reserve(ids_.size());
  for (const ShardId id : ids_) shards_.emplace_back(job, id);
}

Status ShardSet::Check(const RequestPlan& plan, const Buffer& keys,
                       std::span<const float> floats) const {
  std::vector<Status> statuses(shards_.size());
  executor_.ParallelFor(shards_.size(), [&](size_t slot) {
    statuses[slot] = shards_[slot].Check(plan.OfShard(slot), keys, floats);
  });
  return FirstFailure(statuses);
}

Buffer ShardSet::Read(const RequestPlan& plan, const Buffer& keys) {
  std::span<float> rows;
  Buffer buffer = Buffer::AllocateOf<float>(plan.num_floats, &rows);
  executor_.ParallelFor(shards_.size(),
                        [&](size_t slot) { shards_[slot].Read(plan.OfShard(slot), keys, rows); });
  return buffer;
}

void ShardSet::Store(const RequestPlan& plan, const StoreRequest& request) {
  executor_.ParallelFor(shards_.size(), [&](size_t slot) {
    shards_[slot].Store(plan.OfShard(slot), request.keys, request.rows.As<float>());
  });
}

void ShardSet::Apply(std::span<const PlannedPush> pushes, float scale, int64_t step) {
  executor_.ParallelFor(shards_.size(),
                        [&](size_t slot) { shards_[slot].Apply(pushes, slot, scale, step); });
}

RowsDigest ShardSet::Digest() const {
  std::vector<RowsDigest> digests(shards_.size());
  executor_.ParallelFor(shards_.size(),
                        [&](size_t slot) { digests[slot] = shards_[slot].Digest(); });
  RowsDigest sum;
  for (const RowsDigest& digest : digests) sum.Add(digest);
  return sum;
}

size_t ShardSet::bytes() const {
  size_t bytes = 0;
  for (const Shard& shard : shards_) bytes += shard.bytes();
  return bytes;
}

Result<std::vector<SavedFile>> ShardSet::Save(FileSystem& files, const std::string& folder,
                                              Clock clock) const {
  std::vector<SavedFile> saved(shards_.size());
  std::vector<Status> statuses(shards_.size());
  executor_.ParallelFor(shards_.size(), [&](size_t slot) {
    Result<SavedFile> file = shards_[slot].Save(files, folder, clock);
    if (file.ok()) {
      saved[slot] = *std::move(file);
    } else {
      statuses[slot] = file.status();
    }
  });
  HDPS_RETURN_IF_ERROR(FirstFailure(statuses));
  return saved;
}

Status ShardSet::Load(FileSystem& files, const std::string& folder, Clock clock) {
  HDPS_ASSIGN_OR_RETURN(const Manifest manifest, ReadManifest(files, folder));
  if (manifest.tables_digest != tables_digest_) {
    return {Code::kInvalidArgument,
            folder + ": the checkpoint of another job ('" + manifest.job_name +
                "'): its tables, rules, shards or seed differ; give the job it was trained with"};
  }
  if (manifest.clock != clock) {
    return {Code::kCorruption, folder + ": the checkpoint is of clock " +
                                   std::to_string(manifest.clock) + ", expected " +
                                   std::to_string(clock)};
  }
  std::unordered_map<std::string, const SavedFile*> by_name;
  for (const SavedFile& file : manifest.files) by_name[file.name] = &file;
  std::vector<Status> statuses(shards_.size());
  executor_.ParallelFor(shards_.size(), [&](size_t slot) {
    const std::string name = SnapshotName(ids_[slot]);
    const auto file = by_name.find(name);
    statuses[slot] =
        file == by_name.end()
            ? Status(Code::kCorruption, folder + ": the manifest does not name " + name)
            : shards_[slot].Load(files, folder, *file->second, clock);
  });
  return FirstFailure(statuses);
}

}  // namespace hdps
