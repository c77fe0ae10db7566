// Keeps the file scheduler.state over the life of a job.
#include "scheduler/state/kept_state.h"

#include <utility>

#include "common/job/job_spec.h"
#include "common/platform/failpoint.h"
#include "scheduler/members/validate_cluster.h"

namespace hdps {
namespace {

// Checks that this job can have the view, and the scaling if there is one.
Status StateFits(const Job& job, const SchedulerState& state) {
  const View& view = state.view;
  if (view.shards.num_shards() != job.cluster.shards) {
    return Status(Code::kCorruption, "scheduler.state has " +
                                         std::to_string(view.shards.num_shards()) +
                                         " shards, the job " + std::to_string(job.cluster.shards));
  }
  HDPS_RETURN_IF_ERROR(ValidateMembers(job, static_cast<uint32_t>(view.servers.size()),
                                       static_cast<uint32_t>(view.workers.size())));
  if (state.wanted_servers == 0) return {};
  return ValidateMembers(job, state.wanted_servers, state.wanted_workers);
}

}  // namespace

SchedulerState StateOf(const MemberChanges& changes, const CommandTracker& tracker,
                       const KeyValueStore& board, JobState job) {
  const Membership& members = changes.members();
  const Scaling& scaling = changes.scaling();
  SchedulerState state;
  state.view = members.view();
  for (const PeerId peer : members.all()) state.processes[peer] = members.ProcessOf(peer);
  if (scaling.under_way()) {
    state.wanted_servers = scaling.servers();
    state.wanted_workers = scaling.workers();
  }
  state.last_ids = tracker.last_ids();
  state.entries = board.entries();
  state.job = std::move(job);
  return state;
}

Status KeptState::CheckReign() const {
  const uint64_t newest = NewestReign(files_, out_);
  if (newest <= run_.reign) return {};
  const std::string path = SchedulerStatePath(out_, newest);
  return Status(Code::kInvalidArgument,
                path + " is of reign " + std::to_string(newest) + ", and this scheduler is " +
                    (run_.reign == 0 ? "not elected; start it with --elect, as before"
                                     : "of reign " + std::to_string(run_.reign) +
                                           ": is etcd another one, or were its data lost?") +
                    "; or remove " + path +
                    " and start the members anew, and the job goes on from its newest checkpoint");
}

Status KeptState::Find(const Job& job) {
  HDPS_ASSIGN_OR_RETURN(std::optional<SchedulerState> state, ReadSchedulerState(files_, out_));
  const bool of_this_run = state && state->job_digest == run_.job_digest &&
                           state->num_servers == run_.num_servers &&
                           state->num_workers == run_.num_workers;
  if (!of_this_run) return {};
  HDPS_RETURN_IF_ERROR(StateFits(job, *state));
  found_ = std::move(state);
  return {};
}

SchedulerState KeptState::TakeFound(bool same_run, const Manifest& newest,
                                    std::vector<std::string>* notices) {
  SchedulerState state = *std::exchange(found_, std::nullopt);
  if (!same_run) {
    if (state.job.stop) {
      notices->push_back("the run before this one was told to stop; this one goes on");
    }
    state.job.ForgetRun();
  }
  // A scheduler that left has synced its state, and nothing came after it.
  if (state.boot != run_.boot && !state.job.scheduler_left) {
    // Members ignore numbers that they have already seen.
    state.job.CountAsLost(newest);
    state.job.phase = JobPhase::kSuspended;
    for (auto& [member, id] : state.last_ids) id += kIdsSkipped;
  }
  return state;
}

std::string KeptState::Write(SchedulerState state, TimeMs now) {
  state.job_digest = run_.job_digest;
  state.num_servers = run_.num_servers;
  state.num_workers = run_.num_workers;
  state.boot = run_.boot;
  state.reign = run_.reign;
  const bool sync = of_machine_ || in_trouble_ || run_.boot.empty();
  const Status written =
      WriteSchedulerState(files_, out_, state, sync ? Survives::kMachine : Survives::kProcess,
                          // Another machine need not see what was appended to an open file.
                          run_.reign == 0 ? &log_ : nullptr);
  tried_at_ = now;
  of_process_ = false;
  of_machine_ = !written.ok();  // It will be tried again.
  const bool was_in_trouble = std::exchange(in_trouble_, !written.ok());
  if (written.ok() && std::exchange(older_, false)) {
    // A file that stays is older than this one, so nobody takes it over.
    static_cast<void>(RemoveSchedulerStates(files_, out_, run_.reign, /*own=*/false));
  }
  if (written.ok()) return was_in_trouble ? "the scheduler's state is written again" : "";
  const Status removed = RemoveSchedulerStates(files_, out_, run_.reign, /*own=*/true);
  if (was_in_trouble) return "";
  return "should the scheduler die now, the job would have to begin from its newest checkpoint, "
         "for its state is not written: " +
         written.message() +
         (removed.ok() ? "" : "; nor is the old one removed: " + removed.message());
}

std::string KeptState::Forget() {
  const Status removed = RemoveSchedulerStates(files_, out_, run_.reign, /*own=*/true);
  HDPS_FAILPOINT("scheduler.state.forgotten");
  return removed.message();
}

}  // namespace hdps
