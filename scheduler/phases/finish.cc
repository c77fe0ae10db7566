// Ends a run.
#include "scheduler/phases/finish.h"

#include <algorithm>
#include <string>
#include <string_view>

#include "common/job/job_facts.h"
#include "common/job/job_spec.h"
#include "common/job/spec/cluster_spec.h"
#include "common/job/spec/train_spec.h"
#include "common/platform/failpoint.h"
#include "scheduler/members/membership.h"
#include "scheduler/phases/move.h"
#include "scheduler/phases/worker_facts.h"
#include "scheduler/plan/checkpoint_catalog.h"
#include "scheduler/plan/command_tracker.h"

namespace hdps {
namespace {

// A member that has ended cannot confirm it again; after this long without a sign it counts as
// ended.
constexpr TimeMs kGoneAfterMs = 2000;

}  // namespace

Next FinishPhase::Begin(const Turn& turn) {
  RemoveMoves(parts_);
  FillSummary(turn);
  const Status written = WriteSummary(parts_.files, parts_.out, turn.job.record.summary);
  if (!written.ok()) {
    return Next::Fail(3, "the job is done, but its summary is not written: " + written.message());
  }
  HDPS_FAILPOINT("scheduler.summary.written");
  for (const PeerId peer : parts_.members.all()) parts_.members.Release(peer);
  turn.orders.Send(parts_.members.all(), MakeCommand(CommandKind::kFinish));
  return Next::Wait();
}

void FinishPhase::FillSummary(const Turn& turn) const {
  const JobRecord& record = turn.job.record;
  const JobPlan& plan = *turn.job.plan;
  RunSummary& summary = turn.job.record.summary;
  const JobRecord::Sums& epoch = record.epoch.examples > 0 ? record.epoch : record.last_epoch;
  summary.job = parts_.job.name;
  summary.mode = WordOf(parts_.job.train.mode);
  summary.workers = static_cast<uint32_t>(parts_.members.workers().size());
  summary.servers = static_cast<uint32_t>(parts_.members.servers().size());
  summary.steps = plan.position().clock;
  summary.examples = record.examples_before + record.trained.examples;
  if (epoch.examples > 0 && !IsTablesJob(parts_.job)) {
    summary.train_logloss = epoch.loss_sum / static_cast<double>(epoch.examples);
  }
  if (record.training_ms > 0) {
    summary.examples_per_second = static_cast<double>(record.examples_worked) * 1000 /
                                  static_cast<double>(record.training_ms);
  }
  summary.wall_seconds = static_cast<double>(turn.now - turn.job.began) / 1000;
  summary.checkpoint = parts_.checkpoints.latest();
  summary.staleness_max = parts_.members.staleness_max();
  summary.cache = parts_.members.cache();
  summary.collectives = parts_.facts.MostOfCollectives();
  summary.refused_checkpoints = parts_.checkpoints.refused();
  summary.changes = parts_.checkpoints.changes();
  if (plan.stopped_early()) summary.stopped_early = turn.job.watches.WhyEnded();
  FillBest(turn.job.watches, &summary);
  if (plan.stopped() && !plan.finished()) summary.stopped_at = plan.position().clock;
}

void FinishPhase::FillBest(const RunWatches& watches, RunSummary* summary) const {
  const Watched& watched = watches.state();
  if (watched.best.best_clock < 0) return;
  summary->best_step = watched.best.best_clock;
  constexpr std::string_view kOfFirst = " of the first set";
  summary->best_metric = watched.best.of;
  if (summary->best_metric.ends_with(kOfFirst)) {
    summary->best_metric.resize(summary->best_metric.size() - kOfFirst.size());
  }
  summary->best_value = watched.best.best;
  summary->best_auc = watched.best_auc;
  summary->best_logloss = watched.best_logloss;
  summary->best_checkpoint = parts_.checkpoints.FolderOf(watched.best.best_clock);
}

Next FinishPhase::OnTick(const Turn& turn) {
  bool waits = false;
  for (const CommandTracker::Waiting& waiting : parts_.tracker.waiting()) {
    const TimeMs patience = std::max<TimeMs>(parts_.job.cluster.dead_after_ms, 5 * kGoneAfterMs);
    if (parts_.members.SilentFor(waiting.member, turn.now) < kGoneAfterMs &&
        turn.now - waiting.since < patience) {
      waits = true;
      continue;
    }
    parts_.notice(parts_.members.NameOf(waiting.member) + " has not confirmed the end of the job");
    turn.orders.dropped.push_back(waiting.member);
  }
  return waits ? Next::Wait() : Next::Over();
}

}  // namespace hdps
