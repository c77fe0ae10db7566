// Keeps whether a job runs in this process.
#include "python/src/only_run.h"

#include <atomic>

#include "python/src/status.h"

namespace hdps::python {
namespace {

std::atomic<bool> g_runs = false;

}  // namespace

OnlyRun::OnlyRun() {
  if (!g_runs.exchange(true)) return;
  Raise(Status(Code::kUnavailable,
               "a job is trained in this process already; wait for its end (of hdps.local: close "
               "its workers), or train in another process "
               "(multiprocessing.get_context(\"spawn\"))"));
}

OnlyRun::~OnlyRun() { g_runs = false; }

}  // namespace hdps::python
