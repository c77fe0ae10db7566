// Linux gives each thread a nice value of its own.
#include "common/platform/threads/thread_priority.h"

#include <sys/resource.h>

namespace hdps {

// Weights of the scheduler fall by a fifth with each step: nice 10 has 110, nice 0 has 1024
// (kernel/sched/core.c, sched_prio_to_weight). To raise the value needs no right, so a failure
// leaves the thread as it is.
void LowerThreadPriority() { static_cast<void>(::setpriority(PRIO_PROCESS, 0, 10)); }

}  // namespace hdps
