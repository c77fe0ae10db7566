// sum[i] = parts[0][i] + parts[1][i] + ... in the order of the ranks, on a GPU.
#pragma once

#include <cstddef>
#include <cstdint>

namespace hdps {

// parts[ranks * count] and sum[count] are device memory; sum may be parts' first `count` values.
// `stream` is a cudaStream_t. Returns a cudaError_t.
int LaunchRankSum(const float* parts, uint32_t ranks, size_t count, float* sum, void* stream);

}  // namespace hdps
