// Handles the changes of a running job: a stop, losses and other numbers of members, and a takeover
// by another scheduler process.
#include <glog/logging.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>

#include "common/job/job_spec.h"
#include "common/job/spec/cluster_spec.h"
#include "common/job/spec/train_spec.h"
#include "common/planning/in_place.h"
#include "scheduler/job_coordinator.h"
#include "scheduler/members/membership.h"
#include "scheduler/members/time_text.h"
#include "scheduler/phases/load.h"
#include "scheduler/phases/move.h"
#include "scheduler/phases/train.h"
#include "scheduler/plan/checkpoint_catalog.h"
#include "scheduler/plan/command_tracker.h"
#include "scheduler/report/run_report.h"

namespace hdps {

bool JobCoordinator::TakeOver(const JobState& state, TimeMs now) {
  const auto& newest = parts_.checkpoints.newest();
  job_.lost_to = std::max(state.plan.position.clock, newest ? newest->manifest.clock : 0);
  job_.began = now - state.wall_ms;
  job_.record = state;
  const bool left = std::exchange(job_.record.scheduler_left, false);
  ++(left ? job_.record.summary.leaves : job_.record.summary.failures_survived);
  kind_ = JobPhase::kSuspended;
  stands_since_ = now;
  // Until a move has saved its rows, all members stand at the plan's position in the old view: the
  // job goes on from there, and what the move has written is not used.
  const bool stands = state.phase >= JobPhase::kQuiet && state.phase <= JobPhase::kMoveSave;
  if ((state.phase < JobPhase::kTrain && !stands) || state.phase >= JobPhase::kOver) {
    job_.record = job_.record.WithoutProgress();
    return false;
  }
  job_.watches = RunWatches(*spec_, state.watched);
  job_.plan.emplace(*spec_, state.plan, state.epoch_rows);
  if (!state.stop) job_.plan->ForgetStop();
  parts_.report.Begin(now, progress());
  job_.save_times.Begin(now);
  if (stands) RemoveMoves(phase_parts_);
  if (state.phase != JobPhase::kTrain) {
    // Some holders may have evicted rows already.
    const bool evicts = state.phase == JobPhase::kEvict;
    Follow(evicts ? Next::Enter(JobPhase::kEvict) : Next::Done(), now);
    return true;
  }
  auto train = std::make_unique<TrainPhase>(phase_parts_);
  train->TakeOver(job_, now);
  kind_ = JobPhase::kTrain;
  phase_ = std::move(train);
  changed_ = true;
  for (const JobRecord::Order& order : job_.record.orders) {
    parts_.tracker.SendAgain(order.worker, order.command, now);
  }
  return true;
}

void JobCoordinator::Stop() {
  JobRecord& record = job_.record;
  record.stop = changed_ = true;
  TrainPhase* const round = training_phase();
  const Clock position = job_.plan ? job_.plan->position().clock : 0;
  const Clock here = round != nullptr ? round->furthest() : position;
  if (round != nullptr) TellWayBack(here);
  record.reached = std::max(record.reached, here);
  if (job_.plan && job_.StopIsDueAt(position)) job_.plan->Stop();
  if (round != nullptr) round->PauseIfDue(job_);
}

void JobCoordinator::TellWayBack(Clock from) const {
  const JobRecord& record = job_.record;
  if (!record.stop || from >= record.reached) return;
  parts_.notice("the job is to stop: it trains to step " + std::to_string(record.reached) +
                " again, which was reached before the loss, and is saved there");
}

void JobCoordinator::Suspend(TimeMs now) {
  if (kind_ == JobPhase::kSuspended || kind_ == JobPhase::kOver) return;
  // The work of the present round is lost with it, as is everything since the checkpoint.
  ProgressState state = progress();
  for (uint32_t rank = 0; training() && rank < parts_.members.workers().size(); ++rank) {
    state.clock = std::max(state.clock, parts_.members.WorkerClock(rank));
  }
  job_.EndTraining(now);
  const auto& newest = parts_.checkpoints.newest();
  const Clock clock = newest ? newest->manifest.clock : 0;
  const uint64_t examples = newest ? newest->manifest.examples : 0;
  if (job_.plan) {
    JobRecord& record = job_.record;
    job_.lost_to = std::max(state.clock, clock);
    record.reached = std::max(record.reached, job_.lost_to);
    record.summary.steps_again += static_cast<uint64_t>(job_.lost_to - clock);
    const uint64_t reached = record.examples_before + state.examples;
    record.summary.examples_again += reached - std::min(reached, examples);
    record.examples_worked += state.examples - record.trained.examples;
  }
  parts_.tracker.DropAll();
  pending_.Forget();
  ahead_.Forget();
  stands_since_ = kind_ == JobPhase::kQuiet ? quiet_since_ : now;
  saves_here_ = false;
  needs_restart_ = job_.quiet_wanted = awaits_workers_ = false;
  take_up_.clear();
  job_.not_told = {};
  BeginPhase(JobPhase::kSuspended, nullptr, now);
}

void JobCoordinator::ServersLost(size_t servers, TimeMs now) {
  job_.record.summary.failures_survived += static_cast<uint32_t>(servers);
  changed_ = true;
  DropAhead("a server is lost", now);
  DropThoseWhoLeft();
  if (pending_.under_way()) {
    parts_.tracker.DropAll(CommandKind::kAwaitSaved);
    pending_.Drop("a server is lost that had taken rows and not written them");
  }
  if (kind_ != JobPhase::kLoadServers && kind_ != JobPhase::kSave && kind_ != JobPhase::kDigest &&
      kind_ != JobPhase::kEvict) {
    return;
  }
  parts_.tracker.DropAll();
  Follow(Next::Again(kind_), now);
}

std::string JobCoordinator::WhyGoBack() const {
  if (!training()) return "the job was not training";
  return WhyNotInPlace(*spec_);
}

void JobCoordinator::ReplaceWorkers(const std::vector<PeerId>& before, const ProgressState& told,
                                    const Loss& loss, TimeMs now) {
  CHECK(training());
  awaits_workers_ = false;
  changed_ = true;
  job_.record.summary.failures_survived += static_cast<uint32_t>(loss.members);
  const std::vector<PeerId> workers = parts_.members.workers();
  CHECK_EQ(before.size(), workers.size());
  // The job stood, so no row has grown older. In the other modes the others have trained on.
  if (spec_->train.mode == Mode::kSync && job_.training_since) {
    *job_.training_since += now - loss.since;
  }
  for (uint32_t rank = 0; rank < workers.size(); ++rank) {
    if (workers[rank] == before[rank]) continue;  // It was only silent.
    const Clock begun = parts_.members.WorkerClock(rank) + 1;
    take_up_[workers[rank]] = begun + Clock{spec_->cluster.pushes_in_flight_max};
    Orders orders;
    training_phase()->Replace(rank, before[rank], Turn{job_, orders, now});
    CarryOut(orders, now);
    parts_.notice(parts_.members.NameOf(workers[rank]) + " was replaced in place after " +
                  TenthsOf(now - loss.since) + "; nobody goes back");
    parts_.report.Replaced(now, parts_.members.NameOf(workers[rank]), now - loss.since);
  }
  if (StepsTakenUp(*spec_) > 0) MeetAgain(before, now);
  // No heartbeat has any more what the lost ones had told.
  const ProgressState left = progress();
  job_.not_told.examples += told.examples - std::min(told.examples, left.examples);
  job_.not_told.loss_sum += told.loss_sum - left.loss_sum;
  // All may have answered while somebody was awaited who was only silent.
  if (!parts_.tracker.phase_is_answered()) return;
  Follow(Ask(now, [this](const Turn& turn) { return phase_->OnAllAnswered(turn); }), now);
}

void JobCoordinator::MeetAgain(const std::vector<PeerId>& before, TimeMs now) {
  const std::vector<PeerId> workers = parts_.members.workers();
  for (uint32_t rank = 0; rank < workers.size(); ++rank) {
    if (workers[rank] != before[rank]) continue;
    take_up_[workers[rank]] =
        parts_.members.WorkerClock(rank) + 1 + Clock{spec_->cluster.pushes_in_flight_max};
    Orders orders;
    training_phase()->MeetAgain(rank, Turn{job_, orders, now});
    CarryOut(orders, now);
  }
}

bool JobCoordinator::takes_up() const {
  return training() && std::ranges::any_of(take_up_, [this](const auto& one) {
           if (!parts_.members.Has(one.first)) return false;
           const bool trains = std::ranges::any_of(parts_.tracker.waiting(), [&](const auto& open) {
             return open.member == one.first && open.command == CommandKind::kTrain;
           });
           return trains &&
                  parts_.members.WorkerClock(*parts_.members.WorkerRank(one.first)) < one.second;
         });
}

void JobCoordinator::GoBack(const Loss& loss, TimeMs now) {
  CHECK(kind_ == JobPhase::kSuspended);
  needs_restart_ = false;
  job_.loss = loss;
  job_.loss->since = std::min(loss.since, stands_since_);
  job_.record.summary.failures_survived += static_cast<uint32_t>(loss.members);
  const std::optional<FoundCheckpoint>& start = parts_.checkpoints.newest();
  const Clock clock = start ? start->manifest.clock : 0;
  job_.lost_to = std::max(job_.lost_to, clock);
  RemoveMoves(phase_parts_);
  TellWayBack(clock);
  job_.plan.reset();
  auto load = std::make_unique<LoadPhase>(phase_parts_, start);
  Follow(BeginPhase(JobPhase::kLoadServers, std::move(load), now), now);
}

std::string JobCoordinator::PointOfReturn() const {
  const auto& newest = parts_.checkpoints.newest();
  if (!newest) return "the first step, for there is no checkpoint yet";
  return "step " + std::to_string(newest->manifest.clock) + ", checkpoint " + newest->folder;
}

void JobCoordinator::GoOn(TimeMs now) {
  CHECK(quiet());
  job_.quiet_wanted = false;
  Follow(Next::Done(), now);
}

void JobCoordinator::SaveHere(TimeMs now) {
  CHECK(quiet());
  saves_here_ = true;
  job_.plan->SaveHere();
  Follow(Next::Done(), now);
}

bool JobCoordinator::saved() const {
  const auto& newest = parts_.checkpoints.newest();
  return (newest ? newest->manifest.clock : 0) >= progress().clock;
}

void JobCoordinator::CountLeft(size_t members) {
  job_.record.summary.leaves += static_cast<uint32_t>(members);
  changed_ = true;
}

void JobCoordinator::BeginAhead(View next, TimeMs now) {
  CHECK(!ahead_.under_way());
  Orders orders;
  const std::string fault = ahead_.Begin(std::move(next), orders);
  CarryOut(orders, now);
  if (!fault.empty()) DropAhead(fault, now);
}

void JobCoordinator::OnAhead(const Answer& answer, TimeMs now) {
  Orders orders;
  const std::string fault = ahead_.OnAnswer(answer, orders);
  CarryOut(orders, now);
  if (!fault.empty()) DropAhead(fault, now);
}

void JobCoordinator::DropAhead(const std::string& why, TimeMs now) {
  if (!ahead_.under_way()) return;
  parts_.tracker.DropAll(CommandKind::kSaveAhead);
  parts_.tracker.DropAll(CommandKind::kLoadAhead);
  Orders orders;
  ahead_.Drop(orders);
  CarryOut(orders, now);
  RemoveMoves(phase_parts_);
  parts_.notice("shards stay where they are: " + why);
}

void JobCoordinator::ChangeMembers(View next, TimeMs now, AheadCopies ahead) {
  CHECK(quiet());
  auto move =
      std::make_unique<MovePhase>(phase_parts_, std::move(next), quiet_since_, std::move(ahead));
  const JobPhase first = move->first();
  Follow(BeginPhase(first, std::move(move), now), now);
}

}  // namespace hdps
