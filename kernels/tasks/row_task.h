// What every task on rows or elements is made of: see row_tasks.h.
#pragma once

#include <cmath>
#include <cstddef>

#include "kernels/matrix.h"

#ifdef __CUDACC__
#define HDPS_ROW_TASK __host__ __device__
#else
#define HDPS_ROW_TASK
#endif

namespace hdps {

// A task is called once for each element (row, column) or, where it only has that, once for each
// row of what Over() gives. The calls may come in any order and at the same time, so none reads
// what another writes. All that a task points to is in the memory of the device. A task whose work
// on a row is not that of Over().cols floats says how many they are: FloatsARow().

template <typename AnyMatrix>
HDPS_ROW_TASK auto& ElementOf(const AnyMatrix& matrix, size_t row, size_t col) {
  return matrix.data[row * matrix.stride + col];
}

HDPS_ROW_TASK inline void WriteTo(float& to, Write write, float value) {
  to = write == Write::kAdd ? to + value : value;
}

// The sum of a[i] * b[i]: element i goes to partial sum i % 8, the partial sums are added in order.
HDPS_ROW_TASK inline float DotOf(const float* a, const float* b, size_t count) {
  constexpr size_t kLanes = 8;
  float lanes[kLanes] = {};
  size_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    for (size_t lane = 0; lane < kLanes; ++lane) lanes[lane] += a[i + lane] * b[i + lane];
  }
  for (size_t lane = 0; i + lane < count; ++lane) lanes[lane] += a[i + lane] * b[i + lane];
  float sum = 0.0f;
  for (size_t lane = 0; lane < kLanes; ++lane) sum += lanes[lane];
  return sum;
}

}  // namespace hdps
