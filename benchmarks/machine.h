// The machine a figure was measured on, and how busy others kept it meanwhile.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "common/platform/file_system.h"
#include "common/platform/monotonic_clock.h"

namespace hdps {

struct Machine {
  std::string cpu;  // As the kernel names it.
  int cores = 0;    // Online.
  uint64_t memory_bytes = 0;
  std::string vector_width;  // "avx512", "avx2" or "plain": the widest that this CPU has.
};
Machine ThisMachine(FileSystem& files);

// CPU used by others than this process and the processes it started, from /proc.
class LoadMeter {
 public:
  explicit LoadMeter(FileSystem& files);
  // In cores, since the last call that gave a number, or since the start; time stolen by other
  // guests counts. -1 when less than half a second went by, as the kernel counts in hundredths, or
  // when the kernel does not tell.
  double ForeignCores();

 private:
  struct Reading {
    double wall = 0, all = 0, own = 0;  // Seconds.
  };
  Reading Read();

  FileSystem& files_;
  const std::unique_ptr<MonotonicClock> clock_;
  Reading last_;
};

}  // namespace hdps
