// Moves shards from server to server.
#include "scheduler/phases/move.h"

#include <algorithm>
#include <set>
#include <utility>

#include "common/job/job_spec.h"
#include "common/job/spec/cluster_spec.h"
#include "common/job/spec/parallel_spec.h"
#include "common/platform/file_identity.h"
#include "scheduler/members/membership.h"
#include "scheduler/members/replica_plan.h"
#include "scheduler/phases/store_dense.h"
#include "scheduler/report/wait_notices.h"

namespace hdps {
namespace {

constexpr const char* kCheckpointFolder = "checkpoint";
constexpr const char* kMovesPrefix = "moves_of_view_";

}  // namespace

MovePhase::MovePhase(const PhaseParts& parts, View next, TimeMs quiet_since, AheadCopies ahead)
    : Phase(parts),
      next_(std::move(next)),
      quiet_since_(quiet_since),
      ahead_(std::move(ahead)),
      stage_(parts.job.parallel.dense_exchange == DenseExchange::kAllreduce ? JobPhase::kMoveDense
                                                                            : JobPhase::kMoveSave) {
}

Next MovePhase::Begin(const Turn& turn) {
  answers_.clear();
  fault_.clear();
  switch (stage_) {
    case JobPhase::kMoveDense:
      turn.orders.Send(WhoStoresDense(parts_.job, parts_.members),
                       MakeCommand(CommandKind::kStoreDense));
      return Next::Wait();
    case JobPhase::kMoveSave:
      return SendSaves(turn);
    case JobPhase::kMoveServers:
      return SendLoads(turn);
    default:
      return SendPosition(turn);
  }
}

bool MovePhase::TakesRefusal(const Answer& answer) {
  if (!IsOfDamagedFiles(answer) && answer.command.command != CommandKind::kSave) return false;
  if (fault_.empty()) fault_ = FaultOf(answer);
  return true;
}

std::string MovesFolder(const PhaseParts& parts, ViewId view) {
  return JoinPath(JoinPath(parts.out, kCheckpointFolder),
                  kMovesPrefix + std::to_string(view.value));
}

std::string MovePhase::Folder() const { return MovesFolder(parts_, next_.view); }

Next MovePhase::GoOnWith(JobPhase stage) {
  stage_ = stage;
  return Next::Again(stage);
}

Next MovePhase::SendSaves(const Turn& turn) {
  const View& before = parts_.members.view();
  incoming_shards_ = IncomingShards(before, next_);
  std::set<ShardId> all;
  for (const auto& [peer, shards] : incoming_shards_) all.insert(shards.begin(), shards.end());
  std::map<PeerId, std::vector<ShardId>> leaving;  // By the primary of their group.
  for (const ShardId shard : all) {
    leaving[before.servers[before.shards.owner[shard.value].value].peer].push_back(shard);
  }
  if (leaving.empty()) return OnAllAnswered(turn);
  Status made;  // The target of a link is left as it is.
  if (IsLink(parts_.files, Folder())) made = parts_.files.RemoveAll(Folder());
  if (made.ok()) made = parts_.files.MakeDirectories(Folder());
  if (!made.ok()) {
    fault_ = made.message();
    return OnAllAnswered(turn);
  }
  for (auto& [server, shards] : leaving) {
    Command save = MakeCommand(CommandKind::kSave);
    save.until = turn.job.plan->position().clock;
    save.path = Folder();
    save.shards = std::move(shards);
    if (const auto at = ahead_.since.find(server); at != ahead_.since.end()) {
      save.since = at->second;
    }
    turn.orders.Send({server}, save);
  }
  return Next::Wait();
}

// Sends a load to every server: all continue at this clock, and those that receive shards read
// them.
Next MovePhase::SendLoads(const Turn& turn) const {
  for (const PeerId server : parts_.members.holders()) {
    Command load = MakeCommand(CommandKind::kLoad);
    load.until = turn.job.plan->position().clock;
    load.keep = true;
    if (const auto come = incoming_shards_.find(server); come != incoming_shards_.end()) {
      load.path = Folder();
      load.shards = come->second;
      load.files = moved_;
    }
    turn.orders.Send({server}, load);
  }
  return Next::Wait();
}

Next MovePhase::SendPosition(const Turn& turn) const {
  const JobPosition& position = turn.job.plan->position();
  Command load = MakeCommand(CommandKind::kLoad);
  load.until = position.clock;
  load.epoch = position.epoch;
  load.epoch_start = position.epoch_start;
  load.keep = true;
  turn.orders.Send(parts_.members.workers(), load);
  return Next::Wait();
}

Next MovePhase::OnAllAnswered(const Turn& turn) {
  if (!fault_.empty()) {
    parts_.warn("the members of the job could not change: " + fault_);
    const bool rows_are_where_they_were = stage_ == JobPhase::kMoveSave;
    if (!rows_are_where_they_were) return Next::GoBack();
    DropCopies(turn);
    return Finish(turn.job);
  }
  if (stage_ == JobPhase::kMoveDense) return GoOnWith(JobPhase::kMoveSave);
  if (stage_ == JobPhase::kMoveSave) {
    for (const auto& [server, done] : answers_) {
      moved_.insert(moved_.end(), done.files.begin(), done.files.end());
    }
    turn.orders.view = next_;
    return GoOnWith(JobPhase::kMoveServers);
  }
  if (stage_ == JobPhase::kMoveServers) return GoOnWith(JobPhase::kMoveWorkers);
  Report(turn);
  const Membership::Progress told = parts_.members.progress();
  const JobRecord::Sums& trained = turn.job.record.trained;
  turn.job.not_told.examples = trained.examples - std::min(trained.examples, told.examples);
  turn.job.not_told.loss_sum = trained.loss_sum - told.loss_sum;
  return Finish(turn.job);
}

void MovePhase::DropCopies(const Turn& turn) const {
  if (ahead_.since.empty()) return;
  for (const auto& [holder, shards] : incoming_shards_) {
    turn.orders.Send({holder}, MakeCommand(CommandKind::kLoadAhead));
  }
}

void MovePhase::Report(const Turn& turn) const {
  uint64_t rows = 0, bytes = 0;
  for (const SavedFile& file : moved_) rows += file.rows, bytes += file.bytes;
  std::string how;
  if (!ahead_.since.empty()) {
    how = "; " + std::to_string(ahead_.bytes) + " bytes had come before, " + std::to_string(bytes) +
          " came now";
    rows = ahead_.rows;
    bytes += ahead_.bytes;
  }
  const TimeMs stood = turn.now - quiet_since_;
  parts_.report.Scaled(turn.now, turn.job.Progress(parts_.job, parts_.members),
                       parts_.members.view(), {moved_.size(), rows, bytes, stood});
  parts_.notice("the job goes on with " + CountsOf(parts_.members) + "; " +
                std::to_string(moved_.size()) + " of " + std::to_string(parts_.job.cluster.shards) +
                " shards (" + std::to_string(rows) +
                " rows) have come to another server, it stood for " + TenthsOf(stood) + how);
}

Next MovePhase::Finish(JobAtHand& job) const {
  RemoveMoves(parts_);
  job.quiet_wanted = false;
  return Next::Done();
}

void RemoveMoves(const PhaseParts& parts) {
  const std::string folder = JoinPath(parts.out, kCheckpointFolder);
  const Result<std::vector<std::string>> names = parts.files.List(folder);
  if (!names.ok()) return;  // There is no folder yet.
  for (const std::string& name : *names) {
    if (!name.starts_with(kMovesPrefix)) continue;
    const Status removed = parts.files.RemoveAll(JoinPath(folder, name));
    if (!removed.ok()) parts.notice(removed.message());
  }
}

}  // namespace hdps
