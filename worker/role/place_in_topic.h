// Finds where a process that takes a worker's place goes on in the job's topic.
#pragma once

#include "common/base/ids.h"
#include "common/base/status.h"
#include "worker/exchange/push_acks.h"
#include "worker/role/epoch_steps.h"

namespace hdps {

// Sets position->offsets to where the step at position->clock begins, and position->step_ends to
// where it and those behind it end, as far as the process before has pushed them; so the same
// messages are read again. The offsets stay if no server has a push of the order, which began at
// `since`: they are those of its begin. kCorruption: a server has a push of a step, and none knows
// which messages it has.
Status FindInTopic(const PlaceStand& stand, Clock since, EpochPosition* position);

}  // namespace hdps
