// Makes the files of servers a checkpoint.
#include "scheduler/phases/pending_save.h"

#include <utility>

#include "common/platform/failpoint.h"
#include "scheduler/phases/phase.h"
#include "scheduler/phases/worker_facts.h"
#include "scheduler/plan/checkpoint_catalog.h"

namespace hdps {

void PendingSave::Await(NewCheckpoint save, const std::vector<PeerId>& writing, Orders& orders) {
  HDPS_FAILPOINT("scheduler.save.taken");
  Command await;
  await.command = CommandKind::kAwaitSaved;
  await.until = save.manifest.clock;
  orders.Send(writing, await);
  save_ = std::move(save);
}

void PendingSave::Add(const std::vector<SavedFile>& files, const std::string& fault) {
  std::vector<SavedFile>& all = save_->manifest.files;
  if (fault.empty()) all.insert(all.end(), files.begin(), files.end());
  if (save_->fault.empty()) save_->fault = fault;
}

std::optional<Clock> PendingSave::Complete() {
  HDPS_FAILPOINT("scheduler.save.in_files");
  NewCheckpoint save = *std::exchange(save_, std::nullopt);
  const Clock clock = save.manifest.clock;
  const std::string fault = Commit(std::move(save));
  if (fault.empty()) return clock;
  notice_(NotSaved(clock, fault) + "; training goes on");
  return std::nullopt;
}

void PendingSave::Drop(const std::string& why) {
  const Clock clock = std::exchange(save_, std::nullopt)->manifest.clock;
  notice_(NotSaved(clock, why));
  checkpoints_.Discard(clock);
}

std::string PendingSave::Commit(NewCheckpoint save) {
  const Clock clock = save.manifest.clock;
  if (save.fault.empty()) {
    save.manifest.arithmetic = {facts_.arithmetic().begin(), facts_.arithmetic().end()};
    const Status committed = checkpoints_.Commit(std::move(save.manifest));
    if (!committed.ok()) save.fault = committed.message();
  }
  if (!save.fault.empty()) {
    checkpoints_.Discard(clock);
    return save.fault;
  }
  notice_("saved " + checkpoints_.latest());
  return "";
}

std::string PendingSave::NotSaved(Clock clock, const std::string& fault) const {
  const std::string& latest = checkpoints_.latest();
  return "the checkpoint of step " + std::to_string(clock) + " could not be saved: " + fault +
         "; the newest whole one is " + (latest.empty() ? "none" : latest);
}

}  // namespace hdps
