// Takes up an order that was begun: that of a process which had this worker's place before or,
// under allreduce, the own one after another worker was lost.
#include <glog/logging.h>

#include <algorithm>
#include <string>

#include "common/job/job_spec.h"
#include "common/job/spec/cluster_spec.h"
#include "common/planning/in_place.h"
#include "common/protocol/view.h"
#include "worker/role/trainer.h"

namespace hdps {

bool Trainer::TakesUpWithOthers(Status* failure) {
  if (StepsTakenUp(job()) == 0 || channel_.interrupted() || met_in_ == nullptr) return false;
  if (!MissesARank(*failure)) return false;
  LOG(WARNING) << failure->message() << "; waits for another process in the lost worker's place";
  channel_.AwaitInterruption(PatienceMs(job().cluster), met_in_.get());
  if (channel_.interrupted()) return false;
  if (!channel_.end() && !SameWorkers(*met_in_, *channel_.view())) return true;
  // There is no more to wait for.
  *failure =
      Status(Code::kTimeout, failure->message() + "; no process took up the lost one's step");
  return false;
}

Result<PlaceStand> Trainer::TakeUp(const Command& command) {
  if (!command.begun) return PlaceStand();
  channel_.board().Enter("take_up");
  HDPS_RETURN_IF_ERROR(runner_->Settle());
  // The others may wait for the clock that this reports, before they can come to the meeting. The
  // scheduler sends workers that have stopped for a pause on, as far as this one says that it is.
  HDPS_ASSIGN_OR_RETURN(PlaceStand stand, AskStand(channel_));
  const auto report = [this](Clock clock) { channel_.Report(log_.ReportAt(clock)); };
  report(stand.announced);
  HDPS_RETURN_IF_ERROR(AnnounceStand(channel_, stand, runner_->clips_all(), report));
  if (StepsTakenUp(job()) > 0) {
    HDPS_RETURN_IF_ERROR(JoinGroup());
    const DenseReplica& kept = dense_->kept;
    const Clock met = kept.loaded() ? kept.clock() : command.since;
    if (stand.clock < met) {
      return Status(Code::kCorruption, "the dense layers have the sums of " + std::to_string(met) +
                                           " steps, the servers this worker's rows of " +
                                           std::to_string(stand.clock));
    }
    HDPS_ASSIGN_OR_RETURN(stand, AskStand(channel_, met));
    stand.clock = met;
    steps_.TakeUp(met);
    scores_.Forget();  // Those of steps that are made again would count twice.
  }
  if (stand.clock < command.since || stand.clock > command.until) {
    return Status(Code::kCorruption, "the servers have this worker at step " +
                                         std::to_string(stand.clock) + " of an order from " +
                                         std::to_string(command.since) + " to " +
                                         std::to_string(command.until));
  }
  if (stand.clock == command.since) stand.counts = {};  // They are of an earlier order.
  clock_ = stand.clock;
  channel_.Report(log_.ReportAt(clock_));
  LOG(INFO) << "takes up step " << clock_ << " of worker " << channel_.rank().value
            << "; some servers have the rows of " << std::max<Clock>(stand.reached - clock_, 0)
            << " steps from it on";
  return stand;
}

}  // namespace hdps
