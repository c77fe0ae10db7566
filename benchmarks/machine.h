// Describes the machine a figure was measured on, and how busy other processes kept it.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "common/platform/file_system.h"
#include "common/platform/monotonic_clock.h"

namespace hdps {

struct Machine {
  std::string cpu;  // Name from the kernel.
  int cores = 0;    // Number of cores online.
  uint64_t memory_bytes = 0;
  // Widest vectors of the CPU: "avx512", "avx2" or "plain".
  std::string vector_width;
};
Machine ThisMachine(FileSystem& files);

// Measures the CPU use of processes other than this one and its children, from /proc.
class LoadMeter {
 public:
  explicit LoadMeter(FileSystem& files);
  // Returns their use in cores since the last call that returned a number, or since the start; time
  // stolen by other guests counts. Returns -1 if less than half a second passed, because the kernel
  // counts hundredths, or if the kernel gives no figures.
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
