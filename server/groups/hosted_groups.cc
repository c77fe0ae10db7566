// Applies calls to all groups of one server.
#include "server/groups/hosted_groups.h"

#include <glog/logging.h>

#include <algorithm>
#include <iterator>
#include <limits>
#include <set>
#include <utility>

#include "common/job/job_spec.h"
#include "common/job/spec/table_spec.h"
#include "common/protocol/view.h"
#include "server/checkpoint_writer.h"

namespace hdps {

std::vector<ServerId> HostedGroups::OwnIn(const View& view) const {
  std::vector<ServerId> own;
  for (uint32_t g = 0; g < view.servers.size(); ++g) {
    const std::vector<Member> holders = view.HoldersOf({g});
    if (std::ranges::count(holders, self_, &Member::peer) > 0) own.push_back({g});
  }
  return own;
}

void HostedGroups::OnView(const View& view) {
  const std::vector<ServerId> own = OwnIn(view);
  std::erase_if(groups_,
                [&](const auto& held) { return std::ranges::count(own, held.first) == 0; });
  for (const ServerId id : own) {
    std::unique_ptr<ShardGroup>& group = groups_[id];
    const bool followed = group != nullptr && !group->leads();
    if (group == nullptr) {
      const ShardGroupOptions options{id,      self_,        sabotage_, sections_,
                                      memory_, guests_read_, &meters_};
      group = std::make_unique<ShardGroup>(job_, executor_, options);
    }
    group->OnView(view);
    if (followed && group->leads()) {
      LOG(INFO) << "view " << view.view.value << ": primary of group " << id.value << " now";
    }
  }
}

ShardGroup* HostedGroups::Of(const Frame& frame) const {
  const auto at = groups_.find({frame.header.group});
  return at == groups_.end() ? nullptr : at->second.get();
}

void HostedGroups::OnTick(TimeMs now) {
  for (const auto& [id, group] : groups_) group->OnTick(now);
}

void HostedGroups::DropRows() {
  for (const auto& [id, group] : groups_) group->DropRows();
}

std::unique_ptr<ShardSet> HostedGroups::EmptyLike(const ShardGroup& group) const {
  return std::make_unique<ShardSet>(job_, executor_, group.shards().ids(), memory_);
}

HostedGroups::Loaded HostedGroups::Load(FileSystem& files, const Command& command, Status* status) {
  Loaded loaded;
  for (const auto& [id, group] : groups_) {
    loaded[id] = EmptyLike(*group);
    if (!status->ok() || command.path.empty()) continue;
    *status = command.init ? loaded[id]->LoadInit(files, job_, command.path)
                           : loaded[id]->Load(files, job_, command.path, command.until);
  }
  if (status->ok()) return loaded;
  for (auto& [id, shards] : loaded) shards.reset();  // Leaves no half-loaded set.
  for (auto& [id, shards] : loaded) shards = EmptyLike(*groups_.at(id));
  return loaded;
}

Status HostedGroups::TakeShards(FileSystem& files, const Command& load) {
  if (sabotage_.moved_rows_left) return {};
  for (const auto& [id, group] : groups_) {
    HDPS_RETURN_IF_ERROR(group->shards().LoadFrom(files, load));
  }
  return {};
}

Status HostedGroups::Evict(const Command& command) {
  const std::vector<TableSpec>& tables = job_.tables;
  bool fits = command.last_steps.size() == tables.size();
  for (size_t t = 0; fits && t < tables.size(); ++t) {
    fits = command.last_steps[t] == 0 || tables[t].policy.evict_after_seconds > 0;
  }
  if (!fits) return {Code::kInvalidArgument, "no such tables evict rows by time here"};
  for (const auto& [id, group] : groups_) {
    group->shards().EvictUntil(command.last_steps, command.until + 1);
  }
  return failure();
}

Clock HostedGroups::Reset(Clock clock, Loaded loaded) {
  Clock furthest = 0;
  for (const auto& [id, group] : groups_) {
    furthest = std::max(furthest, group->furthest());
    group->Reset(clock, std::move(loaded[id]));
  }
  return furthest;
}

Result<std::vector<TakenSnapshot>> HostedGroups::Save(FileSystem& files, const Command& command,
                                                      CommandDone* done) {
  const RecordedSpan span(meters_.recorder(), {command.until - 1}, "save",
                          "save, with the job at rest");
  const bool takes = command.take && command.shards.empty();
  CopyBudget budget(memory_ != nullptr ? memory_->copy_bytes() : kCopiesBytesMax);
  ShardSet::Taken all;
  for (const auto& [id, group] : groups_) {
    if (!group->leads()) continue;
    if (sabotage_.deltas_forget_erased) group->shards().ForgetErased(command.since);
    ShardSet::Taken own;
    ShardSet& shards = group->shards();
    if (takes) {
      HDPS_ASSIGN_OR_RETURN(
          own, shards.Take(files, command.path, command.until, command.since, &budget));
    } else {
      HDPS_ASSIGN_OR_RETURN(own.files, shards.Save(files, command.path, command.until,
                                                   command.since, command.shards));
    }
    done->counts.Add(shards.counters());
    std::ranges::move(own.snapshots, std::back_inserter(all.snapshots));
    std::ranges::move(own.files, std::back_inserter(done->files));
  }
  for (const SavedFile& file : done->files) done->rows += file.rows;
  done->taken = !all.snapshots.empty();
  return std::move(all.snapshots);
}

Status HostedGroups::Digest(CommandDone* done) const {
  RowsDigest sum;
  for (const auto& [id, group] : groups_) {
    done->row_bytes += group->shards().bytes();
    if (!group->leads()) continue;
    HDPS_ASSIGN_OR_RETURN(const RowsDigest digest, group->shards().Digest());
    sum.Add(digest);
    done->counts.Add(group->shards().counters());
  }
  done->digest[0] = sum.sum[0];
  done->digest[1] = sum.sum[1];
  done->rows = sum.rows;
  return {};
}

std::optional<Result<RowsDigest>> HostedGroups::DigestOf(ServerId group) const {
  const auto at = groups_.find(group);
  if (at == groups_.end()) return std::nullopt;
  return at->second->shards().Digest();
}

std::vector<Outgoing> HostedGroups::TakeOutgoing() {
  std::vector<Outgoing> all;
  for (const auto& [id, group] : groups_) {
    std::ranges::move(group->TakeOutgoing(), std::back_inserter(all));
  }
  return all;
}

std::vector<PeerId> HostedGroups::WaitsFor() const {
  std::set<PeerId> all;
  for (const auto& [id, group] : groups_) {
    for (const PeerId peer : group->WaitsFor()) all.insert(peer);
  }
  return {all.begin(), all.end()};
}

Status HostedGroups::failure() const {
  for (const auto& [id, group] : groups_) HDPS_RETURN_IF_ERROR(group->failure());
  return {};
}

Clock HostedGroups::finished() const {
  Clock least = std::numeric_limits<Clock>::max();
  for (const auto& [id, group] : groups_) least = std::min(least, group->finished());
  return groups_.empty() ? 0 : least;
}

ServerCounters HostedGroups::counters() const {
  ServerCounters sum;
  for (const auto& [id, group] : groups_) {
    const ServerCounters& one = group->counters();
    sum.pulls += one.pulls;
    sum.pulls_parked += one.pulls_parked;
    sum.pushes += one.pushes;
    sum.pushes_repeated += one.pushes_repeated;
    sum.steps += one.steps;
    sum.refused += one.refused;
    sum.dropped += one.dropped;
    sum.staleness_max = std::max(sum.staleness_max, one.staleness_max);
  }
  return sum;
}

void HostedGroups::CountInMeters() const {
  for (uint32_t t = 0; t < job_.tables.size(); ++t) {
    TableHoldings held;
    for (const auto& [id, group] : groups_) {
      if (!group->leads()) continue;
      group->shards().VisitTable({t}, [&held](const TableSlice& slice) { held.Add(slice); });
    }
    meters_.TakeOver({t}, held);
  }
  meters_.TakeOver(counters());
}

}  // namespace hdps
