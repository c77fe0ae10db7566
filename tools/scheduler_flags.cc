// Defines --scheduler.
#include "tools/scheduler_flags.h"

#include <gflags/gflags.h>

#include "common/protocol/locate/scheduler_locator.h"

DEFINE_string(scheduler, "", hdps::kSchedulerHelp);

namespace hdps {

Result<std::unique_ptr<SchedulerConnection>> OpenScheduler(std::vector<KeyRole> roles) {
  HDPS_RETURN_IF_ERROR(CheckSchedulerGiven(FLAGS_scheduler));
  HDPS_ASSIGN_OR_RETURN(Connections connections, ReadConnections(std::move(roles)));
  return SchedulerConnection::Open(FLAGS_scheduler, std::move(connections));
}

}  // namespace hdps
