// Implements what phases have in common.
#include "scheduler/phases/phase.h"

#include "common/base/counted.h"
#include "common/job/job_spec.h"
#include "scheduler/members/membership.h"

namespace hdps {

bool Phase::IsOfDamagedFiles(const Answer& answer) const {
  return answer.command.command == CommandKind::kLoad && !parts_.members.WorkerRank(answer.from) &&
         (answer.done.code == Code::kCorruption || answer.done.code == Code::kNotFound);
}

std::string Phase::FaultOf(const Answer& answer) const {
  return parts_.members.NameOf(answer.from) + ": " + answer.done.message;
}

std::string CountsOf(const Membership& members) {
  return Counted(members.servers().size(), "server") + " and " +
         Counted(members.workers().size(), "worker");
}

}  // namespace hdps
