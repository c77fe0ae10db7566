// What becomes of a job when members are lost, change, or when the scheduler itself comes back.
#include <glog/logging.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "scheduler/job_coordinator.h"
#include "scheduler/members/replica_plan.h"
#include "scheduler/report/wait_notices.h"

namespace hdps {

JobState JobCoordinator::state(TimeMs now) const {
  JobState state;
  state.phase = phase_;
  if (plan_) state.plan = plan_->state();
  state.watched = watches_.state();
  state.epoch_rows = epoch_rows_;
  state.stop = stop_;
  state.trained = trained_;
  state.epoch = epoch_;
  state.last_epoch = last_epoch_;
  state.examples_before = examples_before_;
  state.examples_worked = examples_worked_;
  state.training_ms = training_ms_ + (phase_ == Phase::kTrain ? now - phase_began_ : 0);
  state.wall_ms = now - began_;
  state.summary = summary_;
  state.orders = orders_;
  return state;
}

bool JobCoordinator::TakeOver(const JobState& state, TimeMs now) {
  began_ = now - state.wall_ms;
  stop_ = state.stop;
  examples_worked_ = state.examples_worked;
  training_ms_ = state.training_ms;
  summary_ = state.summary;
  ++summary_.failures_survived;
  phase_ = Phase::kSuspended;
  if (state.phase < Phase::kTrain || state.phase >= Phase::kOver) return false;
  trained_ = state.trained;
  epoch_ = state.epoch;
  last_epoch_ = state.last_epoch;
  examples_before_ = state.examples_before;
  watches_ = RunWatches(*job_, state.watched);
  epoch_rows_ = state.epoch_rows;
  plan_.emplace(*job_, state.plan, epoch_rows_);
  parts_.report.Begin(now, progress());
  if (state.phase != Phase::kTrain) {
    EnterNextStep(now);
    return true;
  }
  phase_ = Phase::kTrain;
  phase_began_ = now;
  changed_ = true;
  round_.emplace(parts_.members.workers().size(), plan_->position().clock, plan_->until());
  orders_ = state.orders;
  for (const JobState::Order& order : orders_) {
    round_->TakeOver(*parts_.members.WorkerRank(order.worker));
  }
  if (stop_) round_->Pause();
  for (const JobState::Order& order : orders_) {
    parts_.tracker.SendAgain(order.worker, order.command, now);
  }
  return true;
}

void JobCoordinator::Suspend(TimeMs now) {
  if (phase_ == Phase::kSuspended || phase_ == Phase::kOver) return;
  // What the round at hand has done is lost with it, as is all since the checkpoint.
  const ProgressState state = progress();
  if (phase_ == Phase::kTrain) training_ms_ += now - phase_began_;
  const auto& newest = parts_.checkpoints.newest();
  const Clock clock = newest ? newest->manifest.clock : 0;
  const uint64_t examples = newest ? newest->manifest.examples : 0;
  if (plan_) {
    summary_.steps_again += static_cast<uint64_t>(std::max<Clock>(state.clock - clock, 0));
    const uint64_t reached = examples_before_ + state.examples;
    summary_.examples_again += reached - std::min(reached, examples);
    examples_worked_ += state.examples - trained_.examples;
  }
  parts_.tracker.DropAll();
  pending_.reset();
  round_.reset();
  evaluations_.clear();
  needs_restart_ = quiet_wanted_ = false;
  save_again_at_.reset();
  not_told_ = {};
  Enter(Phase::kSuspended, now);
}

void JobCoordinator::ServersLost(size_t servers, TimeMs now) {
  summary_.failures_survived += static_cast<uint32_t>(servers);
  changed_ = true;
  DropPending("a server is lost that had taken rows and not written them");
  if (phase_ != Phase::kLoadServers && phase_ != Phase::kSave && phase_ != Phase::kDigest) return;
  parts_.tracker.DropAll();
  save_again_at_.reset();
  Enter(phase_, now);
}

void JobCoordinator::GoBack(const Loss& loss, TimeMs now) {
  CHECK(phase_ == Phase::kSuspended);
  needs_restart_ = false;
  loss_ = loss;
  summary_.failures_survived += static_cast<uint32_t>(loss.members);
  start_ = parts_.checkpoints.newest();
  plan_.reset();
  Enter(Phase::kLoadServers, now);
}

std::string JobCoordinator::PointOfReturn() const {
  const auto& newest = parts_.checkpoints.newest();
  if (!newest) return "the first step, for there is no checkpoint yet";
  return "step " + std::to_string(newest->manifest.clock) + ", checkpoint " + newest->folder;
}

void JobCoordinator::BeginReport(TimeMs now) {
  if (!loss_) return parts_.report.Begin(now, progress());
  const TimeMs stood = now - loss_->since;
  loss_.reset();
  parts_.report.WentBack(now, progress(), stood);
  parts_.notice("the job goes on from " + PointOfReturn() + " with " +
                std::to_string(parts_.members.servers().size()) + " server(s) and " +
                std::to_string(parts_.members.workers().size()) + " worker(s); it stood for " +
                TenthsOf(stood));
}

void JobCoordinator::GoOn(TimeMs now) {
  CHECK(quiet());
  quiet_wanted_ = false;
  EnterNextStep(now);
}

void JobCoordinator::ChangeMembers(View next, TimeMs now) {
  CHECK(quiet());
  next_view_ = std::move(next);
  const bool dense_at_workers = job_->parallel.dense_exchange == DenseExchange::kAllreduce;
  Enter(dense_at_workers ? Phase::kMoveDense : Phase::kMoveSave, now);
}

std::string JobCoordinator::MovesFolder() const {
  return JoinPath(out_, "checkpoint/moves_of_view_" + std::to_string(next_view_.view.value));
}

void JobCoordinator::SendMovedShards(TimeMs now) {
  const View& before = parts_.members.view();
  moved_.clear();
  come_ = ShardsThatCome(before, next_view_);
  std::set<ShardId> all;
  for (const auto& [peer, shards] : come_) all.insert(shards.begin(), shards.end());
  std::map<PeerId, std::vector<ShardId>> leaving;  // By the primary of their group.
  for (const ShardId shard : all) {
    leaving[before.servers[before.shards.owner[shard.value].value].peer].push_back(shard);
  }
  if (leaving.empty()) return CompleteMove(now);
  if (const Status made = parts_.files.MakeDirectories(MovesFolder()); !made.ok()) {
    fault_ = made.message();
    return CompleteMove(now);
  }
  for (auto& [server, shards] : leaving) {
    Command save = MakeCommand(CommandKind::kSave);
    save.until = plan_->position().clock;
    save.path = MovesFolder();
    save.shards = std::move(shards);
    Send({server}, save, now);
  }
}

// Every server takes up at this clock; those that rows have come to read them.
void JobCoordinator::SendLoadsOfMoved(TimeMs now) {
  for (const PeerId server : parts_.members.holders()) {
    Command load = MakeCommand(CommandKind::kLoad);
    load.until = plan_->position().clock;
    load.keep = true;
    if (const auto come = come_.find(server); come != come_.end()) {
      load.path = MovesFolder();
      load.shards = come->second;
      load.files = moved_;
    }
    Send({server}, load, now);
  }
}

void JobCoordinator::CompleteMove(TimeMs now) {
  const bool rows_are_where_they_were = phase_ == Phase::kMoveSave;
  if (!fault_.empty()) {
    parts_.warn("the members of the job could not change: " + fault_);
    if (rows_are_where_they_were) return FinishMove(now);
    quiet_wanted_ = false;
    Suspend(now);
    needs_restart_ = true;
    return;
  }
  if (phase_ == Phase::kMoveSave) {
    for (const auto& [server, done] : answers_) {
      moved_.insert(moved_.end(), done.files.begin(), done.files.end());
    }
    parts_.enter_view(next_view_);
    return Enter(Phase::kMoveServers, now);
  }
  if (phase_ == Phase::kMoveServers) return Enter(Phase::kMoveWorkers, now);
  uint64_t rows = 0, bytes = 0;
  for (const SavedFile& file : moved_) rows += file.rows, bytes += file.bytes;
  parts_.report.Scaled(now, progress(), parts_.members.view(),
                       {moved_.size(), rows, bytes, now - quiet_since_});
  parts_.notice("the job goes on with " + std::to_string(parts_.members.servers().size()) +
                " server(s) and " + std::to_string(parts_.members.workers().size()) +
                " worker(s); " + std::to_string(moved_.size()) + " of " +
                std::to_string(job_->cluster.shards) + " shards (" + std::to_string(rows) +
                " rows) have come to another server, it stood for " + TenthsOf(now - quiet_since_));
  const Membership::Progress told = parts_.members.progress();
  not_told_.examples = trained_.examples - std::min(trained_.examples, told.examples);
  not_told_.loss_sum = trained_.loss_sum - told.loss_sum;
  FinishMove(now);
}

void JobCoordinator::FinishMove(TimeMs now) {
  if (const Status removed = parts_.files.RemoveAll(MovesFolder()); !removed.ok()) {
    parts_.notice(removed.message());
  }
  phase_ = Phase::kQuiet;
  GoOn(now);
}

}  // namespace hdps
