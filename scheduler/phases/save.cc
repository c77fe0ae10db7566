// Sends commands to save, and handles the answers.
#include "scheduler/phases/save.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "common/job/job_spec.h"
#include "common/job/spec/checkpoint_spec.h"
#include "common/protocol/status_messages.h"
#include "scheduler/members/membership.h"
#include "scheduler/plan/checkpoint_catalog.h"
#include "scheduler/report/wait_notices.h"

namespace hdps {
namespace {

// First and longest wait before the last save is tried again; the wait doubles each time.
constexpr TimeMs kAgainMs = 1000, kAgainMsMax = 30'000;

// Is true if the run ends after this save.
bool IsLast(const JobPlan& plan) { return plan.stopped() || plan.finished(); }

}  // namespace

Next SavePhase::Begin(const Turn& turn) {
  answers_.clear();
  fault_.clear();
  again_at_.reset();
  if (parts_.pending.under_way()) return Next::Wait();
  JobPlan& plan = *turn.job.plan;
  const Clock clock = plan.position().clock;
  const std::optional<FoundCheckpoint>& newest = parts_.checkpoints.newest();
  const bool stays = newest && !(IsLast(plan) && newest->manifest.is_delta());
  if (stays && newest->manifest.clock == clock) {
    // Preparing it again would first remove it.
    plan.Done();
    return Next::Done();
  }
  turn.job.save_times.Saves(turn.now, plan.full_save());
  const Clock since = plan.full_save() ? 0 : parts_.checkpoints.DeltaBase();
  const Result<std::string> folder = parts_.checkpoints.Prepare(clock, since);
  if (!folder.ok()) {
    fault_ = folder.status().message();
    return OnAllAnswered(turn);
  }
  Command save = MakeCommand(CommandKind::kSave);
  save.until = clock;
  save.path = *folder;
  save.since = since;
  save.take = !IsLast(plan);
  turn.orders.Send(parts_.members.servers(), save);
  return Next::Wait();
}

bool SavePhase::TakesRefusal(const Answer& answer) {
  if (fault_.empty()) fault_ = FaultOf(answer);
  return true;
}

NewCheckpoint SavePhase::WhatWasSaved(const JobAtHand& job) const {
  RowCounts counts;
  for (const auto& [server, done] : answers_) counts.Add(done.counts);
  NewCheckpoint save{ManifestOf(job.Written(JobPhase::kSave, job.began), counts), fault_};
  std::vector<SavedFile>& files = save.manifest.files;
  for (const auto& [server, done] : answers_) {
    files.insert(files.end(), done.files.begin(), done.files.end());
  }
  return save;
}

Next SavePhase::OnAllAnswered(const Turn& turn) {
  JobPlan& plan = *turn.job.plan;
  NewCheckpoint save = WhatWasSaved(turn.job);
  const Clock clock = save.manifest.clock;
  std::vector<PeerId> writing;
  for (const auto& [server, done] : answers_) {
    if (done.taken) writing.push_back(server);
  }
  if (fault_.empty() && !writing.empty()) {
    parts_.pending.Await(std::move(save), writing, turn.orders);
    plan.Done(JobPlan::Outcome::kTaken);
  } else if (const std::string fault = parts_.pending.Commit(std::move(save)); fault.empty()) {
    plan.Done();
  } else {
    const std::string message = parts_.pending.NotSaved(clock, fault);
    if (IsLast(plan)) return TryAgain(message, turn.now);
    parts_.notice(message + "; training goes on");
    plan.Done(JobPlan::Outcome::kFailed);
  }
  return Next::Done();
}

// Waits and tries again: no rows are lost while the disk is full.
Next SavePhase::TryAgain(const std::string& message, TimeMs now) {
  if (!failed_since_) {
    failed_since_ = now;
    wait_ms_ = kAgainMs;
  }
  const TimeMs patience = TimeMs{1000} * parts_.job.checkpoint.retry_s;
  if (now - *failed_since_ + wait_ms_ > patience) return Next::Fail(3, message);
  again_at_ = now + wait_ms_;
  parts_.warn(message + ". It is the last of this run, so it is tried again in " +
              SecondsOf(wait_ms_) + ", for up to " + SecondsOf(patience) + " in all");
  wait_ms_ = std::min(2 * wait_ms_, kAgainMsMax);
  return Next::Wait();
}

Next SavePhase::OnTick(const Turn& turn) {
  if (!again_at_ || turn.now < *again_at_) return Next::Wait();
  return Next::Again(JobPhase::kSave);
}

}  // namespace hdps
