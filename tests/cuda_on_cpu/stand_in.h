// What tests say to the stand-in, and ask it.
#pragma once

#include <cstddef>
#include <cstdint>

namespace cuda_on_cpu {

// Everything that CUDA leaves open follows from it: the order of blocks and threads, which of two
// streams goes first.
void SetSeed(uint64_t seed);
// Before the first use of a device; as many bytes each.
void SetDevices(int count, size_t bytes_each = size_t{4} << 30);
// Of each device from here on.
void SetMemory(size_t bytes);

struct Counters {
  uint64_t up_bytes = 0, up_copies = 0;      // From the host's memory to a device's.
  uint64_t down_bytes = 0, down_copies = 0;  // The other way.
  uint64_t kernels = 0, products = 0, collectives = 0;
  uint64_t epilogues = 0;   // Products with something beside them.
  uint64_t heuristics = 0;  // Choices of an algorithm.
  uint64_t in_graphs = 0;   // Of kernels and products.
  uint64_t graph_launches = 0, graph_updates = 0, graphs_built = 0;
  uint64_t bytes_in_use = 0, bytes_peak = 0;  // Of all devices' memory.
};
Counters CountersNow();
// Whether cuBLASLt has nothing but plain products.
void RefuseEpilogues(bool refuse);
// Whether streams can be captured.
void RefuseGraphs(bool refuse);
void ForgetPeak();  // bytes_peak is what is in use now.

}  // namespace cuda_on_cpu
