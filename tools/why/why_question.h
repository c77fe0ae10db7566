// Asks a scheduler for what explains the waits of its job.
#pragma once

#include "common/base/status.h"
#include "scheduler/why/explanation.h"
#include "scheduler/why/why_facts.h"

namespace hdps {

class SchedulerConnection;

// Asks twice, and returns within five seconds. Errors: kUnavailable says what is wrong with the
// scheduler or the way to it.
Result<WhyFacts> AskWhy(SchedulerConnection& connection);

}  // namespace hdps
