// Controls the CUDA emulation from tests, and reads its counters.
#pragma once

#include <cstddef>
#include <cstdint>

namespace cuda_on_cpu {

// Sets the seed of everything that CUDA leaves open: the order of blocks and threads, and which of
// two streams runs first.
void SetSeed(uint64_t seed);
// Sets the devices and the bytes of each. Requires: no device was used before.
void SetDevices(int count, size_t bytes_each = size_t{4} << 30);
// Sets the memory of each device from now on.
void SetMemory(size_t bytes);

struct Counters {
  uint64_t up_bytes = 0, up_copies = 0;      // From host to device.
  uint64_t down_bytes = 0, down_copies = 0;  // From device to host.
  uint64_t kernels = 0, products = 0, collectives = 0;
  uint64_t epilogues = 0;   // Products with an epilogue.
  uint64_t heuristics = 0;  // Calls that choose an algorithm.
  uint64_t in_graphs = 0;   // Kernels and products in graphs.
  uint64_t graph_launches = 0, graph_updates = 0, graphs_built = 0;
  uint64_t bytes_in_use = 0, bytes_peak = 0;  // Memory of all devices.
};
Counters CountersNow();
// Sets whether cuBLASLt refuses all but plain products.
void RefuseEpilogues(bool refuse);
// Sets whether the capture of streams is refused.
void RefuseGraphs(bool refuse);
void ForgetPeak();  // Sets bytes_peak to the bytes in use.

}  // namespace cuda_on_cpu
