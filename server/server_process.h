// One server from its first frame to its last: the node, its loop, and the signal to stop.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

#include "common/job/job.h"
#include "common/net/transport.h"
#include "common/platform/executor.h"
#include "common/platform/file_system.h"
#include "common/platform/monotonic_clock.h"

namespace hdps {

struct ServerProcessOptions {
  std::shared_ptr<const Job> job;
  PeerId self;                                // As the transport was told.
  std::string scheduler_address;              // Where to dial it.
  std::string own_address;                    // Where this server's transport already listens.
  int32_t rank = -1;                          // -1: the scheduler picks.
  uint32_t num_servers = 0, num_workers = 0;  // As told on the command line; 0 = not told.
  std::string host;                           // For people: host name and process number.
  std::string spill_folder;                   // As of ServerNodeOptions.
  bool own_process = false;
  uint64_t expected_rows = 0;
  const std::atomic<bool>* stop = nullptr;  // Becoming true asks the scheduler to drain the job.
};

struct ServerExit {
  int status = 0;
  std::string reason;
};

// Runs a server until the job is over.
ServerExit RunServerProcess(const ServerProcessOptions& options, Transport& transport,
                            MonotonicClock& clock, FileSystem& files, Executor& executor);

}  // namespace hdps
