// The sizes of `device`, so that a test can run all of it with small ones on what stands in for
// CUDA.
#pragma once

#include "benchmarks/bench.h"
#include "benchmarks/cases/model_at_work.h"

namespace hdps {

struct DeviceSizes {
  ModelCase model;      // Of each precision.
  size_t memory_bytes;  // What is copied and read within the device's memory.
  size_t bus_bytes;     // What is copied over the bus for GB/s.
  int copies;           // Of each, a sample.
};

// Leaves out, on stderr, what has no GPU.
Status RunDeviceCases(const DeviceSizes& sizes, const BenchSetting& setting, BenchReport& report);

}  // namespace hdps
