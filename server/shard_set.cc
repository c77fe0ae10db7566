// Spreads requests, digests and checkpoints over the shards of a server.
#include "server/shard_set.h"

#include <algorithm>
#include <string>
#include <utility>

#include "common/job/job_file.h"
#include "common/job/job_spec.h"
#include "common/job/spec/cluster_spec.h"
#include "common/job/spec/table_spec.h"
#include "common/job/table_slices.h"
#include "common/job/tables/joined_tables.h"
#include "common/platform/failpoint.h"
#include "common/protocol/row_messages.h"
#include "embedding/memory/frequency_sketch.h"
#include "embedding/row_copy.h"
#include "embedding/snapshot/snapshot.h"
#include "kernels/host/half_floats.h"

namespace hdps {
namespace {

// Work below this size runs on the calling thread: it is done before another thread is awake, and
// if several servers share the cores, another thread may not run soon.
constexpr size_t kAloneBytes = 256u << 10;

Buffer MakeRows(const ShardSet::RowSection& section, size_t num_floats,
                std::span<std::byte>* rows) {
  return MakeSection(section.source, section.to, num_floats * FloatBytes(section.format), rows);
}

// The places of every shard's changed rows in a reply, table by table.
struct ChangesPlan {
  struct Offsets {
    size_t floats = 0, positions = 0;
  };
  std::vector<Offsets> begins;     // [shards, tables]
  std::vector<uint32_t> num_rows;  // [tables]
  std::vector<bool> whole;         // [tables]: all rows, without positions.
  Offsets end;
};

// `changed`: [shards, tables].
ChangesPlan PlanChanges(const RequestPlan& plan, std::span<const Shard::Changed> changed) {
  const size_t num_tables = plan.num_tables, num_pieces = plan.pieces.size();
  ChangesPlan to;
  to.begins.resize(num_pieces);
  for (size_t t = 0; t < num_tables; ++t) {
    size_t num_keys = 0, num_rows = 0;
    for (size_t i = t; i < num_pieces; i += num_tables) {
      const ShardPiece& piece = plan.pieces[i];
      num_keys += piece.num_keys;
      num_rows += changed[i].all ? piece.num_keys : changed[i].positions.size();
    }
    to.num_rows.push_back(static_cast<uint32_t>(num_rows));
    to.whole.push_back(num_rows == num_keys);
    for (size_t i = t; i < num_pieces; i += num_tables) {
      to.begins[i] = to.end;
      to.end.floats += changed[i].all ? plan.pieces[i].num_floats() : changed[i].weights.size();
      if (!to.whole[t]) to.end.positions += changed[i].positions.size();
    }
  }
  return to;
}

}  // namespace

Status ShardSet::FirstFailure(const std::vector<Status>& statuses) {
  for (const Status& status : statuses) {
    if (!status.ok()) return status;
  }
  return {};
}

ShardSet::ShardSet(const Job& job, Executor& executor, const std::vector<ShardId>& shards,
                   ServerMemoryLimit* memory, std::unique_ptr<ShardSet> before)
    : executor_(executor),
      memory_(memory),
      tables_digest_(TablesDigest(job)),
      first_of_group_(TablesThatShareRows(job)),
      num_shards_(job.cluster.shards),
      evicts_(std::ranges::any_of(job.tables,
                                  [](const TableSpec& table) {
                                    return table.policy.evict_after_steps > 0 ||
                                           table.policy.capped();
                                  })),
      ids_(shards) {
  shards_.reserve(ids_.size());
  for (const ShardId id : ids_) {
    const auto has = [&](const Shard& shard) { return shard.id() == id; };
    const auto at = before == nullptr ? nullptr : &before->shards_;
    const auto kept =
        at == nullptr ? std::vector<Shard>::iterator() : std::ranges::find_if(*at, has);
    if (at != nullptr && kept != at->end()) {
      shards_.push_back(std::move(*kept));
    } else {
      shards_.emplace_back(job, tables_digest_, first_of_group_, id, memory);
    }
  }
}

void ShardSet::ForEachShard(size_t bytes, const std::function<void(size_t)>& work) const {
  if (bytes > kAloneBytes) return executor_.ParallelFor(shards_.size(), work);
  for (size_t slot = 0; slot < shards_.size(); ++slot) work(slot);
}

void ShardSet::EndStep(int64_t step) {
  HDPS_FAILPOINT("server.step.ended");
  if (!evicts_) return;
  executor_.ParallelFor(shards_.size(), [&](size_t slot) { shards_[slot].EndStep(step); });
}

void ShardSet::EvictUntil(std::span<const Clock> last, int64_t step) {
  executor_.ParallelFor(shards_.size(), [&](size_t slot) {
    for (size_t t = 0; t < last.size(); ++t) {
      if (last[t] > 0) shards_[slot].table(t).EvictUntil(last[t], step);
    }
  });
}

RowCounts ShardSet::counters() const {
  RowCounts counters;
  for (const Shard& shard : shards_) counters.Add(shard.counters());
  return counters;
}

Status ShardSet::failure() const {
  for (const Shard& shard : shards_) HDPS_RETURN_IF_ERROR(shard.failure());
  return {};
}

Status ShardSet::CheckKeys(const RequestPlan& plan, const Buffer& keys) const {
  std::vector<Status> statuses(shards_.size());
  ForEachShard(keys.size(), [&](size_t slot) {
    statuses[slot] = shards_[slot].CheckKeys(plan.OfShard(slot), keys);
  });
  return FirstFailure(statuses);
}

Status ShardSet::CheckFloats(const RequestPlan& plan, const Buffer& keys, const Buffer& values,
                             DType format) const {
  std::vector<Status> statuses(shards_.size());
  ForEachShard(values.size(), [&](size_t slot) {
    statuses[slot] = shards_[slot].CheckFloats(plan.OfShard(slot), keys, format, values.bytes());
  });
  return FirstFailure(statuses);
}

Buffer ShardSet::Read(const RequestPlan& plan, const Buffer& keys, const RowSection& section) {
  std::span<std::byte> rows;
  Buffer buffer = MakeRows(section, plan.num_floats, &rows);
  executor_.ParallelFor(shards_.size(), [&](size_t slot) {
    shards_[slot].Read(plan.OfShard(slot), keys, section.format, rows);
  });
  return buffer;
}

ShardSet::Changes ShardSet::ReadChanged(const RequestPlan& plan, const Buffer& keys, int64_t since,
                                        const RowSection& section) {
  const size_t num_tables = plan.num_tables;
  changed_.resize(std::max(changed_.size(), shards_.size() * num_tables));
  const auto of_shard = [&](size_t slot) {
    return std::span(changed_).subspan(slot * num_tables, num_tables);
  };
  const auto look = [&](size_t slot) {
    shards_[slot].ReadChanged(plan.OfShard(slot), keys, since, of_shard(slot));
  };
  executor_.ParallelFor(shards_.size(), look);
  const ChangesPlan to = PlanChanges(plan, changed_);
  Changes changes;
  changes.num_rows = to.num_rows;
  const size_t float_bytes = FloatBytes(section.format);
  std::span<std::byte> rows;
  std::span<uint32_t> positions;
  changes.rows = MakeRows(section, to.end.floats, &rows);
  changes.positions = Buffer::AllocateOf<uint32_t>(to.end.positions, &positions);
  const auto put = [&](size_t slot) {
    for (size_t t = 0; t < num_tables; ++t) {
      const Shard::Changed& from = of_shard(slot)[t];
      const ChangesPlan::Offsets& begin = to.begins[slot * num_tables + t];
      if (from.all) {
        ShardPiece piece = plan.OfShard(slot)[t];
        piece.float_begin = begin.floats;
        shards_[slot].Read({&piece, 1}, keys, section.format, rows);
        continue;
      }
      NarrowFloats(width_, section.format, from.weights, rows.data() + begin.floats * float_bytes);
      if (to.whole[t]) continue;
      const size_t before = plan.OfShard(slot)[t].key_begin - plan.OfShard(0)[t].key_begin;
      for (size_t i = 0; i < from.positions.size(); ++i) {
        positions[begin.positions + i] = static_cast<uint32_t>(before + from.positions[i]);
      }
    }
  };
  executor_.ParallelFor(shards_.size(), put);
  return changes;
}

void ShardSet::Store(const RequestPlan& plan, const StoreRequest& request) {
  HDPS_FAILPOINT("server.store.before_apply");
  executor_.ParallelFor(shards_.size(), [&](size_t slot) {
    shards_[slot].Store(plan.OfShard(slot), request.keys, request.rows.As<float>(),
                        request.clock + 1);
  });
  HDPS_FAILPOINT("server.store.applied");
}

void ShardSet::Apply(std::span<const PlannedPush> pushes, float scale, int64_t step,
                     const UpdateTerms& terms) {
  HDPS_FAILPOINT("server.push.before_apply");
  executor_.ParallelFor(
      shards_.size(), [&](size_t slot) { shards_[slot].Apply(pushes, slot, scale, step, terms); });
  HDPS_FAILPOINT("server.push.applied");
}

SquareSum ShardSet::Squares(std::span<const PlannedPush> pushes, float scale) {
  std::vector<SquareSum> own(shards_.size());
  executor_.ParallelFor(
      shards_.size(), [&](size_t slot) { own[slot] = shards_[slot].Squares(pushes, slot, scale); });
  SquareSum squares;
  for (const SquareSum& one : own) squares.Add(one);
  return squares;
}

Result<RowsDigest> ShardSet::Digest() const {
  HDPS_FAILPOINT_OR_RETURN("server.digest.begun");
  std::vector<RowsDigest> digests(shards_.size());
  std::vector<Status> statuses(shards_.size());
  executor_.ParallelFor(shards_.size(), [&](size_t slot) {
    const Result<RowsDigest> digest = shards_[slot].Digest();
    statuses[slot] = digest.status();
    if (digest.ok()) digests[slot] = *digest;
  });
  HDPS_RETURN_IF_ERROR(FirstFailure(statuses));
  RowsDigest sum;
  for (const RowsDigest& digest : digests) sum.Add(digest);
  return sum;
}

Shard* ShardSet::Find(ShardId id) {
  const auto at = std::ranges::find(shards_, id, &Shard::id);
  return at == shards_.end() ? nullptr : &*at;
}

std::unique_ptr<Shard> ShardSet::NewShard(const Job& job, ShardId id) const {
  return std::make_unique<Shard>(job, tables_digest_, first_of_group_, id, nullptr);
}

std::vector<size_t> ShardSet::BytesOfShards() const {
  std::vector<size_t> bytes;
  for (const Shard& shard : shards_) {
    size_t copy = 0;  // Has 32 bits of each number, whatever the format of the weights in memory.
    for (size_t t = 0; t < first_of_group_.size(); ++t) {
      const TableSlice& table = shard.table(t);
      const FrequencySketch* const sketch = table.sketch();
      copy += RowCopy::BytesWithKeys(table.num_rows(), table.dim() + table.state_floats());
      if (sketch != nullptr) copy += sketch->bytes();
    }
    bytes.push_back(std::max(shard.bytes(), copy));
  }
  return bytes;
}

size_t ShardSet::bytes() const {
  size_t bytes = 0;
  for (const Shard& shard : shards_) bytes += shard.bytes();
  return bytes;
}

Result<std::vector<SavedFile>> ShardSet::Save(FileSystem& files, const std::string& folder,
                                              Clock clock, Clock since,
                                              const std::vector<ShardId>& which) {
  HDPS_FAILPOINT_OR_RETURN("server.save.begun");
  std::vector<Shard*> chosen;
  for (Shard& shard : shards_) {
    if (which.empty() || std::ranges::count(which, shard.id()) > 0) chosen.push_back(&shard);
  }
  std::vector<SavedFile> saved(chosen.size());
  std::vector<Status> statuses(chosen.size());
  executor_.ParallelFor(chosen.size(), [&](size_t slot) {
    Result<SavedFile> file = which.empty() ? chosen[slot]->Save(files, folder, clock, since)
                                           : chosen[slot]->SaveMoved(files, folder, clock, since);
    if (file.ok()) {
      saved[slot] = *std::move(file);
    } else {
      statuses[slot] = file.status();
    }
  });
  HDPS_RETURN_IF_ERROR(FirstFailure(statuses));
  HDPS_FAILPOINT_OR_RETURN("server.save.written");
  return saved;
}

Result<ShardSet::Taken> ShardSet::Take(FileSystem& files, const std::string& folder, Clock clock,
                                       Clock since, CopyBudget* budget) {
  HDPS_FAILPOINT_OR_RETURN("server.save.begun");
  std::vector<std::optional<TakenSnapshot>> copies(shards_.size());
  std::vector<SavedFile> saved(shards_.size());
  const auto take = [&](size_t slot) -> Status {
    HDPS_ASSIGN_OR_RETURN(copies[slot], shards_[slot].Take(clock, since, budget));
    if (copies[slot]) return {};
    HDPS_ASSIGN_OR_RETURN(saved[slot], shards_[slot].Save(files, folder, clock, since));
    return {};
  };
  std::vector<Status> statuses(shards_.size());
  executor_.ParallelFor(shards_.size(), [&](size_t slot) { statuses[slot] = take(slot); });
  HDPS_RETURN_IF_ERROR(FirstFailure(statuses));
  Taken taken;
  for (size_t slot = 0; slot < shards_.size(); ++slot) {
    if (copies[slot]) taken.snapshots.push_back(*std::move(copies[slot]));
    if (!copies[slot]) taken.files.push_back(std::move(saved[slot]));
  }
  HDPS_FAILPOINT_OR_RETURN("server.save.taken");
  return taken;
}

void ShardSet::ForgetErased(Clock since) {
  for (Shard& shard : shards_) shard.ForgetErased(since);
}

}  // namespace hdps
