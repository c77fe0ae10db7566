// Files on a disk that fails on purpose: full, refusing, slow, or losing its power half-way.
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
    kFull,     // No space is left after `amount` bytes: the write that crosses it is cut off there.
    kFailing,  // Every `amount`-th call fails with an input/output error.
    kSlow,     // Every call takes `amount` milliseconds more.
    kTorn,     // The `amount`-th write leaves its first half, and the process dies.
  };
  Kind kind = Kind::kFull;
  std::string glob;  // Of the end of a path: "checkpoint/*", "scheduler.state*", "*".
  uint64_t amount = 0;
  FaultWindow window;
};

struct FaultFileOptions {
  std::vector<FileFault> faults;
  std::function<void()> crash;           // Empty: as SIGKILL does.
  std::function<void(int64_t ms)> wait;  // Empty: the thread stands still.
};

// `files` with these faults. A message of a failure reads like the system's; every fault is logged
// when it begins to bite. Reading suffers from kFailing and kSlow when a file is opened.
std::unique_ptr<FileSystem> NewFaultFileSystem(std::unique_ptr<FileSystem> files,
                                               FaultFileOptions options,
                                               std::shared_ptr<MonotonicClock> clock);

}  // namespace hdps
