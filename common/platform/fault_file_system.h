// A file system that fails on purpose: full, refusing, slow, or losing power in the middle of a
// write.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "common/platform/fault_window.h"
#include "common/platform/file_system.h"
#include "common/platform/monotonic_clock.h"

namespace hdps {

struct FileFault {
  enum class Kind {
    kFull,     // The disk is full after `amount` bytes: the write that crosses them is cut there.
    kFailing,  // Every `amount`-th call fails with an input/output error.
    kSlow,     // Every call takes `amount` milliseconds longer.
    kTorn,     // The `amount`-th write leaves its first half, and the process crashes.
  };
  Kind kind = Kind::kFull;
  std::string glob;  // Matches the end of a path: "checkpoint/*", "scheduler.state*", "*".
  uint64_t amount = 0;
  FaultWindow window;
};

struct FaultFileOptions {
  std::vector<FileFault> faults;
  std::function<void()> crash;           // If empty, the process ends as by SIGKILL.
  std::function<void(int64_t ms)> wait;  // If empty, the thread sleeps.
};

// Wraps `files` and injects these faults. An error message reads like the system's. Each fault is
// logged when it first has an effect. Reading is affected by kFailing and kSlow only when a file is
// opened.
std::unique_ptr<FileSystem> NewFaultFileSystem(std::unique_ptr<FileSystem> files,
                                               FaultFileOptions options,
                                               std::shared_ptr<MonotonicClock> clock);

}  // namespace hdps
