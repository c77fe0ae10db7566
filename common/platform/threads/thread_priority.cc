// Linux gives each thread a scheduling policy of its own.
#include "common/platform/threads/thread_priority.h"

#include <sched.h>

namespace hdps {

// A thread that wakes takes the core from one of SCHED_IDLE at once. From one of a higher nice
// value it takes it only after milliseconds: nice 10 made the p99 of answers beside a load six
// times as long (docs/records/serving.md). The policy asks for no right, so a failure leaves the
// thread as it is.
void LowerThreadPriority() {
  const sched_param none{};
  static_cast<void>(::sched_setscheduler(0, SCHED_IDLE, &none));
}

}  // namespace hdps
