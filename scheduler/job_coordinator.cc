// Runs the phases one after the other, and passes members' answers to the present one.
#include "scheduler/job_coordinator.h"

#include <glog/logging.h>

#include <algorithm>
#include <utility>

#include "common/base/exit_status.h"
#include "common/job/job_spec.h"
#include "common/protocol/membership_messages.h"
#include "scheduler/members/membership.h"
#include "scheduler/phase_failpoints.h"
#include "scheduler/phases/digest.h"
#include "scheduler/phases/evaluate.h"
#include "scheduler/phases/evict.h"
#include "scheduler/phases/finish.h"
#include "scheduler/phases/init_dense.h"
#include "scheduler/phases/load.h"
#include "scheduler/phases/save.h"
#include "scheduler/phases/store_dense.h"
#include "scheduler/phases/train.h"
#include "scheduler/plan/checkpoint_catalog.h"
#include "scheduler/plan/command_tracker.h"
#include "scheduler/report/wait_notices.h"

namespace hdps {

JobCoordinator::JobCoordinator(std::shared_ptr<const Job> job, std::string out, const Parts& parts)
    : spec_(std::move(job)),
      out_(std::move(out)),
      parts_(parts),
      facts_(*spec_, parts_.notice, parts_.warn),
      pending_(parts_.checkpoints, facts_, parts_.notice),
      phase_parts_{*spec_,        out_,         parts_.members, parts_.tracker, parts_.checkpoints,
                   parts_.report, parts_.files, facts_,         pending_,       parts_.notice,
                   parts_.warn},
      ahead_(phase_parts_),
      job_(*spec_) {
  job_.stops_anywhere = parts_.stops_anywhere;
  job_.Follow(parts_.script);
  job_.heir_begins_anew = parts_.heir_begins_anew;
}

void JobCoordinator::Begin(std::optional<FoundCheckpoint> start, const std::string& init,
                           TimeMs now) {
  job_.began = now;
  if (!start) job_.record.init = init;
  if (!start && init.empty()) return Follow(Next::Enter(JobPhase::kInitDense), now);
  auto load = std::make_unique<LoadPhase>(phase_parts_, std::move(start));
  Follow(BeginPhase(JobPhase::kLoadServers, std::move(load), now), now);
}

std::unique_ptr<Phase> JobCoordinator::Make(JobPhase kind) const {
  switch (kind) {
    case JobPhase::kInitDense:
      return std::make_unique<InitDensePhase>(phase_parts_);
    case JobPhase::kTrain:
      return std::make_unique<TrainPhase>(phase_parts_);
    case JobPhase::kStoreDense:
      return std::make_unique<StoreDensePhase>(phase_parts_);
    case JobPhase::kEvaluate:
      return std::make_unique<EvaluatePhase>(phase_parts_);
    case JobPhase::kDigest:
      return std::make_unique<DigestPhase>(phase_parts_);
    case JobPhase::kEvict:
      return std::make_unique<EvictPhase>(phase_parts_);
    case JobPhase::kSave:
      return std::make_unique<SavePhase>(phase_parts_);
    case JobPhase::kFinish:
      return std::make_unique<FinishPhase>(phase_parts_);
    default:
      LOG(FATAL) << "no phase leads to phase " << static_cast<int>(kind);
  }
}

void JobCoordinator::CarryOut(const Orders& orders, TimeMs now) {
  for (const auto& [to, command] : orders.sent) {
    const CommandId id = parts_.tracker.Send(to, command, now);
    changed_ = true;  // A successor must not give the number again.
    if (command.command != CommandKind::kTrain) continue;
    job_.record.orders.push_back({to, command});
    job_.record.orders.back().command.id = id;
  }
  for (const PeerId member : orders.dropped) parts_.tracker.Drop(member);
  if (!orders.view) return;
  parts_.enter_view(*orders.view);
  DropThoseWhoLeft();
}

void JobCoordinator::DropThoseWhoLeft() {
  for (const CommandTracker::Waiting& waiting : parts_.tracker.waiting()) {
    if (!parts_.members.Has(waiting.member)) parts_.tracker.Drop(waiting.member);
  }
}

Next JobCoordinator::BeginPhase(JobPhase kind, std::unique_ptr<Phase> phase, TimeMs now) {
  PassFailpointOf(kind);
  kind_ = kind;
  phase_ = std::move(phase);
  changed_ = true;
  job_.record.orders.clear();
  if (phase_ == nullptr) return Next::Wait();
  return Ask(now, [this](const Turn& turn) { return phase_->Begin(turn); });
}

Next JobCoordinator::BeginNextStep(TimeMs now) {
  JobPlan& plan = *job_.plan;
  if (job_.StopIsDueAt(plan.position().clock)) plan.Stop();
  if (job_.quiet_wanted && plan.next() == JobStep::kTrain) {
    if (!std::exchange(saves_here_, false)) quiet_since_ = now;
    return BeginPhase(JobPhase::kQuiet, nullptr, now);
  }
  // Phases from kTrain on are in the order of JobStep.
  const auto kind =
      static_cast<JobPhase>(static_cast<int>(JobPhase::kTrain) + static_cast<int>(plan.next()));
  return BeginPhase(kind, Make(kind), now);
}

void JobCoordinator::Follow(Next next, TimeMs now) {
  while (!failure_) {
    switch (next.what) {
      case Next::What::kWait:
        return;
      case Next::What::kReady:
        BeginReport(now);
        next = BeginNextStep(now);
        break;
      case Next::What::kDone:
        next = BeginNextStep(now);
        break;
      case Next::What::kEnter:
        next = BeginPhase(next.phase, Make(next.phase), now);
        break;
      case Next::What::kAgain:
        next = BeginPhase(next.phase, std::move(phase_), now);
        break;
      case Next::What::kBlame:
        return Blame(next, now);
      case Next::What::kGoBack:
        Suspend(now);
        needs_restart_ = true;
        return;
      case Next::What::kFail:
        return Fail(next.exit_status, next.message);
      case Next::What::kOver:
        next = BeginPhase(JobPhase::kOver, nullptr, now);
        break;
    }
  }
}

void JobCoordinator::OnAnswer(PeerId from, const Command& command, const CommandDone& done,
                              TimeMs now) {
  if (failure_) return;
  const Answer answer{from, command, done};
  if (command.command == CommandKind::kAwaitSaved) return OnSaved(answer, now);
  if (MovesAheadBy(command.command)) return OnAhead(answer, now);
  if (phase_ == nullptr) return;
  Next next;
  if (done.code != Code::kOk) {
    if (!phase_->TakesRefusal(answer)) return Refuse(answer, now);
  } else if (ReportsImpossibleClock(answer)) {
    return Refuse(answer, now);
  } else {
    facts_.Learn(done, &job_.record);
    next = Ask(now, [&](const Turn& turn) { return phase_->OnAnswer(answer, turn); });
  }
  if (next.what == Next::What::kWait && !awaits_workers_ && parts_.tracker.phase_is_answered()) {
    next = Ask(now, [this](const Turn& turn) { return phase_->OnAllAnswered(turn); });
  }
  Follow(std::move(next), now);
}

void JobCoordinator::OnSaved(const Answer& answer, TimeMs now) {
  if (!pending_.under_way()) return;
  const bool ok = answer.done.code == Code::kOk;
  pending_.Add(answer.done.files,
               ok ? "" : parts_.members.NameOf(answer.from) + ": " + answer.done.message);
  if (parts_.tracker.IsOpen(CommandKind::kAwaitSaved)) return;
  if (const std::optional<Clock> clock = pending_.Complete()) {
    job_.plan->Saved(*clock);
    changed_ = true;
  }
  if (kind_ != JobPhase::kSave) return;  // Otherwise the save phase has waited.
  Follow(Ask(now, [this](const Turn& turn) { return phase_->Begin(turn); }), now);
}

Clock JobCoordinator::ReachOf(PeerId member) const {
  if (kind_ == JobPhase::kSuspended) return JobPlan::kNoBoundary;
  if (!job_.plan) return job_.loading;
  // A server reports its workers' clock.
  const bool is_worker = parts_.members.WorkerRank(member).has_value();
  Clock reach = job_.plan->position().clock;
  for (const JobRecord::Order& order : job_.record.orders) {
    if (!is_worker || order.worker == member) reach = std::max(reach, order.command.until);
  }
  return reach;
}

bool JobCoordinator::ReportsImpossibleClock(const Answer& answer) const {
  return answer.command.command == CommandKind::kTrain && parts_.give_up &&
         answer.done.clock > ReachOf(answer.from);
}

void JobCoordinator::Refuse(const Answer& answer, TimeMs now) {
  const auto& [from, command, done] = answer;
  if (!parts_.give_up) {
    return Fail(ExitStatusOf(done.code), parts_.members.NameOf(from) + ": " + done.message);
  }
  // Keeps the command open, so that the phase waits until the member is lost.
  parts_.tracker.SendAgain(from, command, now);
  if (done.code == Code::kOk) {
    return parts_.give_up(from,
                          "it says that it has trained to step " + std::to_string(done.clock) +
                              ", and was told to train to step " + std::to_string(ReachOf(from)),
                          kExitDone);
  }
  parts_.give_up(from, done.message,
                 RestartMayHelp(done.code) ? kExitDone : ExitStatusOf(done.code));
}

void JobCoordinator::Blame(const Next& next, TimeMs now) {
  if (!parts_.give_up) return Fail(kExitFailed, next.message);
  parts_.tracker.SendAgain(next.member, next.command, now);
  parts_.give_up(next.member, next.message, kExitFailed);
}

TrainPhase* JobCoordinator::training_phase() const {
  return kind_ == JobPhase::kTrain ? static_cast<TrainPhase*>(phase_.get()) : nullptr;
}

void JobCoordinator::OnProgress(PeerId from, const Heartbeat& heartbeat) {
  const Clock wanted = heartbeat.wants_checkpoint;
  TrainRound::Stand stand = TrainRound::Stand::kSteps;
  if (heartbeat.finished || (wanted > 0 && heartbeat.clock >= wanted)) {
    stand = TrainRound::Stand::kHasEnded;
  } else if (heartbeat.activity.wait_reason == WaitReason::kRows) {
    stand = TrainRound::Stand::kNoRows;
  }
  const std::optional<uint32_t> rank = parts_.members.WorkerRank(from);
  if (rank && training()) training_phase()->OnProgress(*rank, heartbeat.clock, stand);
}

void JobCoordinator::OnTick(TimeMs now) {
  if (failure_ || phase_ == nullptr) return;
  Follow(Ask(now, [this](const Turn& turn) { return phase_->OnTick(turn); }), now);
}

void JobCoordinator::BeginReport(TimeMs now) {
  job_.save_times.Begin(now);
  if (!job_.loss) return parts_.report.Begin(now, progress());
  const TimeMs stood = now - job_.loss->since;
  job_.loss.reset();
  job_.record.summary.stood_ms += stood;
  parts_.report.WentBack(now, progress(), stood);
  parts_.notice("the job goes on from " + PointOfReturn() + " with " + CountsOf(parts_.members) +
                "; it stood for " + TenthsOf(stood));
}

void JobCoordinator::Fail(int exit_status, const std::string& message) {
  if (failure_) return;
  failure_ = {exit_status, message};
  parts_.tracker.DropAll();
}

}  // namespace hdps
