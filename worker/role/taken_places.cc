// Takes up the order of a process that had this worker's place before.
#include <glog/logging.h>

#include <string>

#include "worker/role/trainer.h"

namespace hdps {

Result<PlaceStand> Trainer::TakeUp(const Command& command) {
  if (!command.begun) return PlaceStand();
  channel_.board().Enter("take_up");
  HDPS_ASSIGN_OR_RETURN(PlaceStand stand, TakeUpStand(channel_));
  if (stand.clock < command.since || stand.clock > command.until) {
    return Status(Code::kCorruption, "the servers have this worker at step " +
                                         std::to_string(stand.clock) + " of an order from " +
                                         std::to_string(command.since) + " to " +
                                         std::to_string(command.until));
  }
  if (stand.clock == command.since) stand.counts = {};  // They are of an earlier order.
  clock_ = stand.clock;
  LOG(INFO) << "takes up step " << clock_ << " of worker " << channel_.rank().value << ", whose "
            << stand.reached - clock_ << " last steps some servers have already";
  return stand;
}

}  // namespace hdps
