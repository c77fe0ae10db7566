// Runs one server from its first frame to its last: the node, its loop, and the signal to stop.
#pragma once

#include <atomic>

#include "common/base/exit_status.h"
#include "common/net/transport.h"
#include "common/platform/executor.h"
#include "common/platform/file_system.h"
#include "common/platform/monotonic_clock.h"
#include "server/server_node.h"

namespace hdps {

class MemberWatch;

struct ServerProcessOptions {
  ServerNodeOptions node;  // `sections`, `wake`, `clock`, `file_writes` are set here.
  const std::atomic<bool>* stop = nullptr;  // Becoming true asks the scheduler to drain the job.
  int64_t leave_ms = 0;          // Above 0: it makes the server leave instead, within this time.
  MemberWatch* watch = nullptr;  // Gets copies of the figures; null: nobody looks.
};

// Runs a server until the job is over. Its transport already listens.
ProcessEnd RunServerProcess(const ServerProcessOptions& options, Transport& transport,
                            MonotonicClock& clock, FileSystem& files, Executor& executor);

}  // namespace hdps
