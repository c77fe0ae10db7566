// Defines the sizes of `device`, so that a test can run it with small ones on the CUDA emulation.
#pragma once

#include "benchmarks/bench.h"
#include "benchmarks/cases/model/model_at_work.h"

namespace hdps {

struct DeviceSizes {
  ModelCase model;      // Model, trained in each precision.
  size_t memory_bytes;  // Bytes to copy and to read within the device's memory.
  size_t bus_bytes;     // Bytes to copy over the bus for GB/s.
  int copies;           // Copies per sample.
};

// Runs the cases. Cases that need a GPU are skipped with a line on stderr if there is none.
Status RunDeviceCases(const DeviceSizes& sizes, const BenchSetting& setting, BenchReport& report);

}  // namespace hdps
