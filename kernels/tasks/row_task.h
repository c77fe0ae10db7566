// The parts common to all tasks on rows or elements: see row_tasks.h.
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

// A task is called once for each element (row, column) of Over() or, if it only takes a row, once
// for each row. Calls may come in any order and concurrently, so none reads what another writes.
// All pointers of a task are in the memory of the device. A task whose work on a row is not
// Over().cols floats has FloatsARow(). Tasks with HostRows are vectorized over many rows on the
// host, with the same bits.

template <typename AnyMatrix>
HDPS_ROW_TASK auto& ElementOf(const AnyMatrix& matrix, size_t row, size_t col) {
  return matrix.data[row * matrix.stride + col];
}

HDPS_ROW_TASK inline void WriteTo(float& to, Write write, float value) {
  to = write == Write::kAdd ? to + value : value;
}

// Returns the sum of a[i] * b[i]: element i goes to partial sum i % 8, and the partial sums are
// added in order.
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

// Returns the sum of a[i], in the order of DotOf().
HDPS_ROW_TASK inline float SumOf(const float* a, size_t count) {
  constexpr size_t kLanes = 8;
  float lanes[kLanes] = {};
  size_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    for (size_t lane = 0; lane < kLanes; ++lane) lanes[lane] += a[i + lane];
  }
  for (size_t lane = 0; i + lane < count; ++lane) lanes[lane] += a[i + lane];
  float sum = 0.0f;
  for (size_t lane = 0; lane < kLanes; ++lane) sum += lanes[lane];
  return sum;
}

}  // namespace hdps
