// Loads the rows of a server's shards: those of its own checkpoint, of one that is cut in another
// way, of shards that move here, and of another job's.
#include <glog/logging.h>

#include <algorithm>
#include <deque>
#include <memory>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>

#include "common/job/job_differences.h"
#include "common/job/job_file.h"
#include "common/job/job_registry.h"
#include "common/job/job_spec.h"
#include "common/job/spec/cluster_spec.h"
#include "common/job/spec/table_spec.h"
#include "common/job/table_slices.h"
#include "common/job/tables/init_match.h"
#include "common/platform/failpoint.h"
#include "common/protocol/command_messages.h"
#include "embedding/recut.h"
#include "embedding/snapshot/snapshot.h"
#include "server/shard_set.h"

namespace hdps {
namespace {

// Returns whether a table of `before`, the job of the checkpoint in `folder`, is cut over the
// shards in another way than in `job`.
Result<bool> IsRecut(const Job& before, const Job& job, const std::string& folder) {
  bool recut = false;
  for (size_t t = 0; t < job.tables.size(); ++t) {
    const std::string why = WhyNotRecut(before.tables[t], job.tables[t]);
    if (!why.empty()) {
      return Status(Code::kInvalidArgument, folder + ": table '" + job.tables[t].name +
                                                "' was cut by another slice_mode: " + why);
    }
    recut = recut || !SameCut(before.tables[t], job.tables[t]);
  }
  return recut;
}

// Returns the slices of a shard of `job`.
std::vector<TableSlice> EmptySlices(const Job& job, ShardId shard) {
  const RowPlacement home{.shard = shard, .num_shards = job.cluster.shards};
  std::vector<TableSlice> slices;
  for (uint32_t t = 0; t < job.tables.size(); ++t) {
    slices.emplace_back(job.tables[t], TableId{t}, job.seed, home);
  }
  return slices;
}

// Returns how rows of a table of another job become those of `to`.
MoveRule RuleOf(const InitMatch::Table& table, const TableSpec& to, const InitMatch& match) {
  MoveRule rule{.state = table.state, .ages = false};
  rule.same_shard = to.slice_mode == SliceMode::kField;
  if (!to.dense) return rule;
  rule.key_of = [&tensors = match.tensors](Key key) {
    const auto at = tensors.find(static_cast<uint32_t>(key >> 32));
    if (at == tensors.end()) return std::optional<Key>();
    return std::optional<Key>(Key{at->second} << 32 | (key & 0xffffffff));
  };
  return rule;
}

}  // namespace

Status ShardSet::Load(FileSystem& files, const Job& job, const std::string& folder, Clock clock) {
  HDPS_FAILPOINT_OR_RETURN("server.load.begun");
  HDPS_ASSIGN_OR_RETURN(const std::vector<CheckpointPart> chain, ReadChain(files, folder));
  const Manifest& manifest = chain.back().manifest;
  // The scheduler has already decided whether permitted differences are wanted.
  if (!TablesFit(job, manifest.job_json, manifest.tables_digest)) {
    return {Code::kInvalidArgument,
            folder + ": the checkpoint of another job ('" + manifest.job_name +
                "'): its tables, rules, shards or seed differ; give the job it was trained with"};
  }
  if (manifest.clock != clock) {
    return {Code::kCorruption, folder + ": the checkpoint is of clock " +
                                   std::to_string(manifest.clock) + ", expected " +
                                   std::to_string(clock)};
  }
  if (manifest.tables_digest != tables_digest_) {
    HDPS_ASSIGN_OR_RETURN(const Job before,
                          ParseJob(manifest.job_json, folder, {}, RegistryOf(job.model)));
    HDPS_ASSIGN_OR_RETURN(const bool recut, IsRecut(before, job, folder));
    if (recut) return LoadRecut(files, before, chain);
  }
  return LoadChain(files, chain, IfDamaged::kNothingIsStored);
}

void ShardSet::Separate() {
  for (Shard& shard : shards_) shard.Separate();
}

Status ShardSet::LoadRecut(FileSystem& files, const Job& before,
                           const std::vector<CheckpointPart>& chain) {
  // Rows come table by table, some from other shards.
  Separate();
  for (uint32_t s = 0; s < num_shards_ && !shards_.empty(); ++s) {
    const ShardId from{s};
    const auto own = std::ranges::find(shards_, from, &Shard::id);
    std::vector<TableSlice> slices = EmptySlices(before, from);
    const auto moves = [&](size_t t) {
      return !SameCut(before.tables[t], shards_[0].table(t).spec());
    };
    // Tables that are cut as before are read into their place.
    std::vector<TableSlice*> read;
    for (size_t t = 0; t < slices.size(); ++t) {
      read.push_back(moves(t) || own == shards_.end() ? &slices[t] : &own->table(t));
    }
    HDPS_RETURN_IF_ERROR(ReadShard(files, chain, from, read));
    for (size_t t = 0; t < slices.size(); ++t) {
      std::vector<PlacedSlice> to;
      for (Shard& shard : shards_) to.push_back({&shard.table(t), shard.id()});
      if (moves(t)) HDPS_RETURN_IF_ERROR(RecutRows({&slices[t], from}, num_shards_, to));
    }
  }
  HDPS_FAILPOINT_OR_RETURN("server.load.read");
  return failure();
}

Status ShardSet::LoadInit(FileSystem& files, const Job& job, const std::string& folder) {
  HDPS_FAILPOINT_OR_RETURN("server.load.begun");
  HDPS_ASSIGN_OR_RETURN(const std::vector<CheckpointPart> chain, ReadChain(files, folder));
  HDPS_ASSIGN_OR_RETURN(const Job source, ParseJob(chain.back().manifest.job_json, folder, {},
                                                   RegistryOf(job.model)));
  const InitMatch match = MatchInit(job, source);
  // Tables that share rows are given their parts in order, the first table first.
  const auto from_of = [](const InitMatch::Table& table) { return table.from.value; };
  if (!std::ranges::is_sorted(match.tables, {}, from_of)) Separate();
  HDPS_RETURN_IF_ERROR(TakeInit(files, source, match, chain));
  const auto agree = [](const Shard& shard) { return shard.KeysAgree(); };
  if (!std::ranges::all_of(shards_, agree)) {
    LOG(WARNING) << "tables that could share rows have other keys than each other in the "
                    "checkpoint of --init; their rows are kept apart";
    Separate();
    HDPS_RETURN_IF_ERROR(TakeInit(files, source, match, chain));
  }
  return failure();
}

Status ShardSet::TakeInit(FileSystem& files, const Job& source, const InitMatch& match,
                          const std::vector<CheckpointPart>& chain) {
  const uint32_t from_shards = source.cluster.shards;
  const auto take = [&](ShardId from, std::span<Shard> to) {
    return TakeShard(files, source, match, chain, from, to);
  };
  // Without a limit of memory there is room to read several shards at once.
  if (IsAligned(source, match) && memory_ == nullptr) {
    std::vector<Status> statuses(shards_.size());
    executor_.ParallelFor(shards_.size(), [&](size_t slot) {
      statuses[slot] = take(shards_[slot].id(), std::span(shards_).subspan(slot, 1));
    });
    HDPS_RETURN_IF_ERROR(FirstFailure(statuses));
  } else {
    for (uint32_t s = 0; s < from_shards && !shards_.empty(); ++s) {
      HDPS_RETURN_IF_ERROR(take({s}, shards_));
    }
  }
  HDPS_FAILPOINT_OR_RETURN("server.load.read");
  return {};
}

Status ShardSet::TakeShard(FileSystem& files, const Job& source, const InitMatch& match,
                           const std::vector<CheckpointPart>& chain, ShardId from,
                           std::span<Shard> to) const {
  const uint32_t from_shards = source.cluster.shards;
  std::vector<TableSlice> slices = EmptySlices(source, from);
  std::vector<TableSlice*> shapes;
  for (TableSlice& slice : slices) shapes.push_back(&slice);
  std::deque<MovedRows> takers;  // [tables of the source]
  for (uint32_t t = 0; t < source.tables.size(); ++t) {
    const auto at = std::ranges::find(match.tables, TableId{t}, &InitMatch::Table::from);
    std::vector<PlacedSlice> placed;
    MoveRule rule{.state = false, .ages = false};
    if (at != match.tables.end()) {
      for (Shard& shard : to) placed.push_back({&shard.table(at->to.value), shard.id()});
      rule = RuleOf(*at, placed[0].slice->spec(), match);
    }
    takers.emplace_back(source.tables[t], from, from_shards, placed, num_shards_, rule);
  }
  std::vector<RowTaker*> of_tables;
  for (MovedRows& taker : takers) of_tables.push_back(&taker);
  return ReadShard(files, chain, from, shapes, of_tables);
}

bool ShardSet::IsAligned(const Job& source, const InitMatch& match) const {
  const auto stays = [&](const InitMatch::Table& table) {
    const TableSpec& from = source.tables[table.from.value];
    const TableSpec& to = shards_[0].table(table.to.value).spec();
    return SameCut(from, to) && from.shard_by == to.shard_by;
  };
  // The chunks of a dense tensor have its number in their keys.
  const auto same_number = [](const auto& tensor) { return tensor.first == tensor.second; };
  return source.cluster.shards == num_shards_ && !shards_.empty() &&
         std::ranges::all_of(match.tables, stays) &&
         std::ranges::all_of(match.tensors, same_number);
}

Status ShardSet::LoadFrom(FileSystem& files, const Command& load, ArrivedShards& arrived,
                          bool leave_changes) {
  std::set<std::string> come;
  std::vector<ShardId> ahead;
  std::vector<SavedFile> changes;  // Of those shards.
  for (const ShardId id : load.shards) {
    const auto file = std::ranges::find(load.files, DeltaName(id), &SavedFile::name);
    if (Find(id) == nullptr) continue;  // It comes to another group of this server.
    if (file == load.files.end()) {
      come.insert(SnapshotName(id));
      continue;
    }
    if (!arrived.contains(id)) {
      return {Code::kCorruption, PlaceOf(load.path, *file) +
                                     ": changes of rows that have not come ahead to this server"};
    }
    ahead.push_back(id);
    changes.push_back(*file);
  }
  std::vector<Status> statuses(ahead.size());
  executor_.ParallelFor(ahead.size(), [&](size_t i) {
    if (leave_changes) return;
    const auto& [shard, clock] = arrived.at(ahead[i]);
    statuses[i] = shard->LoadMoved(files, load.path, changes[i], load.until, clock);
  });
  HDPS_RETURN_IF_ERROR(FirstFailure(statuses));
  for (const ShardId id : ahead) {
    Shard* const own = Find(id);
    std::destroy_at(own);
    std::construct_at(own, std::move(*arrived.at(id).shard));
    arrived.erase(id);
  }
  CheckpointPart moved{.folder = load.path, .manifest = {}};
  moved.manifest.clock = load.until;
  moved.manifest.tables_digest = tables_digest_;
  moved.manifest.num_shards = num_shards_;
  for (const SavedFile& file : load.files) {
    if (come.contains(file.name)) moved.manifest.files.push_back(file);
  }
  return LoadChain(files, {std::move(moved)}, IfDamaged::kSlicesAreDropped);
}

Status ShardSet::LoadChain(FileSystem& files, const std::vector<CheckpointPart>& chain,
                           IfDamaged if_damaged) {
  // Most rows of deltas are also in the whole file.
  std::unordered_map<std::string, uint64_t> rows_of_file;
  for (const SavedFile& file : chain.front().manifest.files) rows_of_file[file.name] = file.rows;
  const bool whole = rows_of_file.size() == num_shards_;  // Of all shards; otherwise of some.
  uint64_t rows = 0;
  std::vector<bool> wanted;  // [shards]
  for (const ShardId id : ids_) {
    const auto file = rows_of_file.find(SnapshotName(id));
    wanted.push_back(whole || file != rows_of_file.end());
    if (file != rows_of_file.end()) rows += file->second;
  }
  if (memory_ != nullptr) memory_->WarnIfTooSmallFor(rows);
  std::vector<Status> statuses(shards_.size());
  executor_.ParallelFor(shards_.size(), [&](size_t slot) {
    if (wanted[slot]) statuses[slot] = shards_[slot].Load(files, chain, if_damaged);
  });
  HDPS_FAILPOINT_OR_RETURN("server.load.read");
  return FirstFailure(statuses);
}

}  // namespace hdps
