// Checkpoints of a job, and its end.
#include <glog/logging.h>

#include <algorithm>
#include <utility>

#include "common/platform/failpoint.h"
#include "scheduler/job_coordinator.h"
#include "scheduler/report/wait_notices.h"

namespace hdps {
namespace {

// A member that has ended cannot say so again; after this long without a sign it is taken at its
// word.
constexpr TimeMs kGoneAfterMs = 2000;
// A last save that failed is tried again after this long, doubling up to the longest wait.
constexpr TimeMs kSaveAgainMs = 1000, kSaveAgainMsMax = 30'000;

}  // namespace

void JobCoordinator::BeginSave(TimeMs now) {
  if (pending_) return;  // One at a time: CompletePending() comes back.
  const Clock clock = plan_->position().clock;
  const std::optional<FoundCheckpoint>& newest = parts_.checkpoints.newest();
  if (newest && newest->manifest.clock == clock) {
    // Preparing it again would begin by removing it.
    plan_->Done();
    return EnterNextStep(now);
  }
  const Clock since = plan_->full_save() ? 0 : parts_.checkpoints.DeltaBase();
  const Result<std::string> folder = parts_.checkpoints.Prepare(clock, since);
  if (!folder.ok()) {
    fault_ = folder.status().message();
    return CompleteSave(now);
  }
  Command save = MakeCommand(CommandKind::kSave);
  save.until = clock;
  save.path = *folder;
  save.since = since;
  save.take = !IsLastSave();
  Send(parts_.members.servers(), save, now);
}

bool JobCoordinator::IsLastSave() const { return plan_->stopped() || plan_->finished(); }

void JobCoordinator::CompleteSave(TimeMs now) {
  Save save{.manifest = {}, .fault = fault_};
  Manifest& manifest = save.manifest;
  manifest.clock = plan_->position().clock;
  manifest.epoch = plan_->position().epoch;
  manifest.epoch_start = plan_->position().epoch_start;
  manifest.examples = examples_before_ + trained_.examples;
  manifest.epoch_sums = epoch_;
  manifest.last_epoch_sums = last_epoch_;
  manifest.bad_rows = summary_.bad_rows;
  manifest.watched = watches_.state();
  std::vector<PeerId> writing;
  for (const auto& [server, done] : answers_) {
    manifest.files.insert(manifest.files.end(), done.files.begin(), done.files.end());
    if (done.taken) writing.push_back(server);
  }
  const Clock clock = manifest.clock;
  if (save.fault.empty() && !writing.empty()) {
    HDPS_FAILPOINT("scheduler.save.taken");
    pending_ = std::move(save);
    Command await = MakeCommand(CommandKind::kAwaitSaved);
    await.until = clock;
    Send(writing, await, now);
    plan_->Done(JobPlan::Outcome::kTaken);
  } else if (const std::string fault = Commit(std::move(save)); fault.empty()) {
    plan_->Done();
  } else {
    if (IsLastSave()) return RetrySave(NotSaved(clock, fault), now);
    parts_.notice(NotSaved(clock, fault) + "; training goes on");
    plan_->Done(JobPlan::Outcome::kFailed);
  }
  save_failed_since_.reset();
  EnterNextStep(now);
}

void JobCoordinator::OnSaved(PeerId from, const CommandDone& done, TimeMs now) {
  if (!pending_) return;
  if (done.code == Code::kOk) {
    pending_->manifest.files.insert(pending_->manifest.files.end(), done.files.begin(),
                                    done.files.end());
  } else if (pending_->fault.empty()) {
    pending_->fault = parts_.members.NameOf(from) + ": " + done.message;
  }
  if (!parts_.tracker.IsOpen(CommandKind::kAwaitSaved)) CompletePending(now);
}

void JobCoordinator::CompletePending(TimeMs now) {
  HDPS_FAILPOINT("scheduler.save.in_files");
  Save save = *std::exchange(pending_, std::nullopt);
  const Clock clock = save.manifest.clock;
  if (const std::string fault = Commit(std::move(save)); fault.empty()) {
    plan_->Saved(clock);
    changed_ = true;
  } else {
    parts_.notice(NotSaved(clock, fault) + "; training goes on");
  }
  if (phase_ == Phase::kSave) BeginSave(now);  // It has waited.
}

void JobCoordinator::DropPending(const std::string& why) {
  if (!pending_) return;
  parts_.tracker.DropAll(CommandKind::kAwaitSaved);
  const Clock clock = std::exchange(pending_, std::nullopt)->manifest.clock;
  parts_.notice(NotSaved(clock, why));
  parts_.checkpoints.Discard(clock);
}

std::string JobCoordinator::Commit(Save save) {
  const Clock clock = save.manifest.clock;
  if (save.fault.empty()) {
    save.manifest.arithmetic = {arithmetic_.begin(), arithmetic_.end()};
    const Status committed = parts_.checkpoints.Commit(std::move(save.manifest));
    if (!committed.ok()) save.fault = committed.message();
  }
  if (!save.fault.empty()) {
    parts_.checkpoints.Discard(clock);
    return save.fault;
  }
  parts_.notice("saved " + parts_.checkpoints.latest());
  return "";
}

std::string JobCoordinator::NotSaved(Clock clock, const std::string& fault) const {
  const std::string& latest = parts_.checkpoints.latest();
  return "the checkpoint of step " + std::to_string(clock) + " could not be saved: " + fault +
         "; the newest whole one is " + (latest.empty() ? "none" : latest);
}

// All rows are there: a disk that has room again loses nothing of them.
void JobCoordinator::RetrySave(const std::string& message, TimeMs now) {
  if (!save_failed_since_) {
    save_failed_since_ = now;
    save_wait_ms_ = kSaveAgainMs;
  }
  const TimeMs patience = TimeMs{1000} * job_->checkpoint.retry_s;
  if (now - *save_failed_since_ + save_wait_ms_ > patience) return Fail(3, message);
  save_again_at_ = now + save_wait_ms_;
  parts_.warn(message + ". It is the last of this run, so it is tried again in " +
              SecondsOf(save_wait_ms_) + ", for up to " + SecondsOf(patience) + " in all");
  save_wait_ms_ = std::min(2 * save_wait_ms_, kSaveAgainMsMax);
}

void JobCoordinator::CompleteDigest() {
  summary_.digest[0] = summary_.digest[1] = summary_.rows = 0;
  summary_.row_counts = {};
  summary_.row_bytes = summary_.server_bytes_max = 0;
  for (const PeerId server : parts_.members.servers()) {
    const CommandDone& done = answers_.at(server);
    summary_.digest[0] += done.digest[0];
    summary_.digest[1] += done.digest[1];
    summary_.rows += done.rows;
    summary_.row_counts.Add(done.counts);
    summary_.row_bytes += done.row_bytes;
    summary_.server_bytes_max = std::max(summary_.server_bytes_max, done.process_bytes);
  }
  // Slices of dense layers lie among the rows, but are none to a person.
  summary_.rows -= std::min(summary_.rows, summary_.dense_rows);
  plan_->Done();
}

void JobCoordinator::FillSummary(TimeMs now) {
  const Sums& epoch = epoch_.examples > 0 ? epoch_ : last_epoch_;
  summary_.job = job_->name;
  summary_.mode = WordOf(job_->train.mode);
  summary_.workers = static_cast<uint32_t>(parts_.members.workers().size());
  summary_.servers = static_cast<uint32_t>(parts_.members.servers().size());
  summary_.steps = plan_->position().clock;
  summary_.examples = examples_before_ + trained_.examples;
  if (epoch.examples > 0) {
    summary_.train_logloss = epoch.loss_sum / static_cast<double>(epoch.examples);
  }
  if (training_ms_ > 0) {
    summary_.examples_per_second =
        static_cast<double>(examples_worked_) * 1000 / static_cast<double>(training_ms_);
  }
  summary_.wall_seconds = static_cast<double>(now - began_) / 1000;
  summary_.checkpoint = parts_.checkpoints.latest();
  summary_.staleness_max = parts_.members.staleness_max();
  summary_.cache = parts_.members.cache();
  for (const auto& [worker, tally] : collectives_) summary_.collectives.TakeMost(tally);
  summary_.refused_checkpoints = parts_.checkpoints.refused();
  if (plan_->stopped_early()) summary_.stopped_early = watches_.WhyEnded();
  const Watched& watched = watches_.state();
  if (watched.best.best_clock >= 0) {
    summary_.best_step = watched.best.best_clock;
    summary_.best_auc = watched.best_auc;
    summary_.best_logloss = watched.best_logloss;
    summary_.best_checkpoint = parts_.checkpoints.FolderOf(watched.best.best_clock);
  }
  if (plan_->stopped() && !plan_->finished()) summary_.stopped_at = plan_->position().clock;
}

void JobCoordinator::DropTheFinished(TimeMs now) {
  for (const CommandTracker::Waiting& waiting : parts_.tracker.waiting()) {
    const TimeMs patience = std::max<TimeMs>(job_->cluster.dead_after_ms, 5 * kGoneAfterMs);
    if (parts_.members.SilentFor(waiting.member, now) < kGoneAfterMs &&
        now - waiting.since < patience) {
      continue;
    }
    parts_.notice(parts_.members.NameOf(waiting.member) + " has not confirmed the end of the job");
    parts_.tracker.Drop(waiting.member);
  }
  if (parts_.tracker.empty()) Enter(Phase::kOver, now);
}

}  // namespace hdps
