// What all tasks on rows are written with.
#pragma once

#include <cstddef>

#include "kernels/matrix.h"

#ifdef __CUDACC__
#define HDPS_ROW_TASK __host__ __device__
#else
#define HDPS_ROW_TASK
#endif

namespace hdps {

template <typename AnyMatrix>
HDPS_ROW_TASK auto& ElementOf(const AnyMatrix& matrix, size_t row, size_t col) {
  return matrix.data[row * matrix.stride + col];
}

HDPS_ROW_TASK inline void WriteTo(float& to, Write write, float value) {
  to = write == Write::kAdd ? to + value : value;
}

}  // namespace hdps
