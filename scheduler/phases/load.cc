// Loads a checkpoint, and makes a plan that begins there.
#include "scheduler/phases/load.h"

#include <algorithm>
#include <vector>

#include "common/base/exit_status.h"
#include "common/base/show_number.h"
#include "common/job/job_facts.h"
#include "common/job/job_spec.h"
#include "common/job/spec/data_spec.h"
#include "common/job/spec/train_spec.h"
#include "common/protocol/status_messages.h"
#include "scheduler/members/membership.h"
#include "scheduler/phases/worker_facts.h"
#include "scheduler/plan/checkpoint_catalog.h"

namespace hdps {
namespace {

std::string Whole(uint64_t number) { return ShowWhole(static_cast<double>(number)); }

// Describes the first file that differs, such as "a.csv had 1,200 bytes and has 900"; empty: none.
std::string Difference(const std::vector<FilePrint>& before, const std::vector<FilePrint>& now,
                       const std::vector<std::string>& names) {
  if (before.size() != now.size()) {
    return "there were " + Whole(before.size()) + " files and are " + Whole(now.size());
  }
  const auto [was, is] = std::ranges::mismatch(before, now);
  if (was == before.end()) return "";
  const auto i = static_cast<size_t>(was - before.begin());
  // A machine without the data may know only patterns of file names.
  const std::string name = names.size() == now.size() ? names[i] : "file " + Whole(i + 1);
  if (was->bytes == is->bytes) return name + " has other bytes";
  return name + " had " + Whole(was->bytes) + " bytes and has " + Whole(is->bytes);
}

// Describes the first file of a followed log that is not what it was, though it may have grown;
// empty: none. `before` was taken when the checkpoint's last step had been trained.
std::string Broken(const std::vector<FilePrint>& before, const std::vector<FilePrint>& now) {
  if (now.size() < before.size()) {
    return "there were " + Whole(before.size()) + " files and are " + Whole(now.size());
  }
  for (size_t i = 0; i < before.size(); ++i) {
    const std::string name = "file " + Whole(i + 1) + " of the log, by name,";
    const bool newest = i + 1 == before.size();
    if (newest ? now[i].bytes < before[i].bytes : now[i].bytes != before[i].bytes) {
      return name + " had " + Whole(before[i].bytes) + " bytes and has " + Whole(now[i].bytes);
    }
    if (before[i].hash != 0 && now[i].hash != before[i].hash) return name + " begins otherwise";
  }
  return "";
}

}  // namespace

Next LoadPhase::Begin(const Turn& turn) {
  answers_.clear();
  fault_.clear();
  turn.job.loading = start_ ? start_->manifest.clock : 0;
  Command load = MakeCommand(CommandKind::kLoad);
  if (start_) {
    load.until = start_->manifest.clock;
    load.epoch = IsTablesJob(parts_.job) ? 0 : start_->manifest.epoch;  // See PlanFrom().
    load.epoch_start = start_->manifest.epoch_start;
    load.path = start_->folder;
  } else if (!at_workers_) {
    load.path = turn.job.record.init;
    load.init = !load.path.empty();
  }
  turn.orders.Send(at_workers_ ? parts_.members.workers() : parts_.members.holders(), load);
  return Next::Wait();
}

// Heartbeats may lack a worker's last steps. The servers know them if the worker has died since,
// and the workers that are left know their own. Each answer is counted at once, because the job may
// be sent back again before the last one.
Next LoadPhase::OnAnswer(const Answer& answer, const Turn& turn) {
  CountLost(turn.job, answer.done.clock);
  return Phase::OnAnswer(answer, turn);
}

bool LoadPhase::TakesRefusal(const Answer& answer) {
  if (!IsOfDamagedFiles(answer)) return false;
  if (fault_.empty()) fault_ = FaultOf(answer);
  refused_at_ = std::max(refused_at_, answer.done.clock);
  return true;
}

Next LoadPhase::LoadOlder(JobAtHand& job) {
  parts_.notice("refused the checkpoint " + start_->folder + ": " + fault_);
  Result<std::optional<FoundCheckpoint>> older = parts_.checkpoints.FindOlder(*start_, fault_);
  if (!older.ok()) return Next::Fail(3, older.status().message());
  for (const std::string& line : parts_.checkpoints.TakeNotices()) parts_.notice(line);
  CountLost(job, refused_at_);
  if (job.loss) CountOlder(job, *older ? (*older)->manifest : Manifest());
  start_ = *std::move(older);
  at_workers_ = false;
  return Next::Again(JobPhase::kLoadServers);
}

Next LoadPhase::OnAllAnswered(const Turn& turn) {
  JobAtHand& job = turn.job;
  if (!fault_.empty() && !start_) {
    return Next::Fail(3, "the checkpoint of --init, " + job.record.init + ": " + fault_);
  }
  if (!fault_.empty()) return LoadOlder(job);
  if (!at_workers_) {
    at_workers_ = true;
    return Next::Again(JobPhase::kLoadWorkers);
  }
  parts_.facts.SetEpochRows(answers_.at(parts_.members.workers().front()).rows, &job.record);
  job.SetBackTo(start_ ? start_->manifest : Manifest(), parts_.job);
  if (!start_) return Next::Enter(JobPhase::kInitDense);
  const Manifest& manifest = start_->manifest;
  const std::string other = OtherArithmetic(manifest, parts_.facts.arithmetic());
  if (!other.empty()) parts_.warn(other);
  if (parts_.job.data.follow) {
    const std::string broken = Broken(manifest.data_files, job.record.data_files);
    if (!broken.empty()) {
      return Next::Fail(kExitFailed,
                        "data.follow: since the checkpoint of step " +
                            std::to_string(manifest.clock) + " " + broken +
                            ", so the rows behind that step cannot be found: put the files back, "
                            "or begin a new job on the log as it is");
    }
  } else {
    WarnOfOtherData(job.record);
  }
  job.plan.emplace(job.PlanFrom(parts_.job, {manifest.clock, manifest.epoch, manifest.epoch_start},
                                /*loaded=*/true));
  if (!job.loss) TellResumed(job);
  return Next::Ready();
}

void LoadPhase::TellResumed(JobAtHand& job) const {
  const Clock clock = start_->manifest.clock;
  job.record.summary.resumed_from = clock;
  parts_.notice("resumed from " + start_->folder + " at step " + std::to_string(clock));
  if (!job.plan->finished()) return;
  parts_.notice("this job is already finished: there is nothing left to train" +
                (job.plan->stopped_early() ? ", for " + job.watches.WhyEnded() : ""));
}

void LoadPhase::CountLost(JobAtHand& job, Clock clock) const {
  if (!job.loss || clock <= job.lost_to) return;
  job.record.summary.steps_again += static_cast<uint64_t>(clock - job.lost_to);
  job.lost_to = clock;
  job.record.reached = std::max(job.record.reached, clock);
}

void LoadPhase::CountOlder(JobAtHand& job, const Manifest& older) const {
  const Manifest& newer = start_->manifest;
  RunSummary& summary = job.record.summary;
  summary.steps_again += static_cast<uint64_t>(newer.clock - older.clock);
  summary.examples_again += newer.examples - std::min(newer.examples, older.examples);
}

// Warns if the job resumes within an epoch whose data files differ from those of the checkpoint.
void LoadPhase::WarnOfOtherData(const JobRecord& record) const {
  const Manifest& manifest = start_->manifest;
  if (manifest.clock == manifest.epoch_start || manifest.data_files.empty()) return;
  const std::string difference =
      Difference(manifest.data_files, record.data_files, parts_.job.data.train);
  if (difference.empty()) return;
  const auto steps = static_cast<uint64_t>(manifest.clock - manifest.epoch_start);
  parts_.warn("data.train: since the checkpoint of step " + std::to_string(manifest.clock) + " " +
              difference + ": epoch " + std::to_string(manifest.epoch + 1) +
              " goes on behind the first " + Whole(steps * parts_.job.train.batch_size) +
              " rows (" + Whole(steps) + (steps == 1 ? " step" : " steps") +
              ") of the files as they are now, which it passes over");
}

}  // namespace hdps
