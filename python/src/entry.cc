// Notices forks by a handler that the system calls in the child.
#include "python/src/entry.h"

#include <pthread.h>

#include <atomic>

#include "python/src/status.h"

namespace hdps::python {
namespace {

// Global, because the handler has no arguments of ours.
std::atomic<bool> g_forked = false;

}  // namespace

void RefuseFork() {
  // Registered with the first entry, so that a process forked before it may use the library.
  [[maybe_unused]] static const int registered =
      pthread_atfork(nullptr, nullptr, [] { g_forked = true; });
  if (!Forked()) return;
  Raise(Status(Code::kUnavailable,
               "this process was forked from one that had used hdps, whose threads are not here; "
               "start it by spawn: multiprocessing.get_context(\"spawn\")"));
}

bool Forked() { return g_forked; }

}  // namespace hdps::python
