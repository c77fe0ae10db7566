// Has a tanh without branches, since a library's takes as long as the products around it.
#include "kernels/host/activation_rows.h"

#include <cmath>

#include "common/job/activation.h"
#include "kernels/host/exponential.h"
#include "kernels/tasks/task_bodies.h"

namespace hdps {
namespace {

// Returns tanh x: near zero by a minimax polynomial in x^2 (Cephes, tanhf), else by e^2x. From 9.1
// on it is 1 in a float.
HDPS_INLINE float TanhOf(float x) {
  constexpr float kNear = 0.625f, kOne = 9.1f;
  const float size = std::fabs(x), bounded = size > kOne ? kOne : size;
  const float far = 1.0f - 2.0f / (ExpOf(2.0f * bounded) + 1.0f);
  const float z = x * x;
  float p = -5.70498872745e-3f;
  p = p * z + 2.06390887954e-2f;
  p = p * z - 5.37397155531e-2f;
  p = p * z + 1.33314422036e-1f;
  p = p * z - 3.33332819422e-1f;
  const float near = p * z * x + x;
  return size < kNear ? near : std::copysign(far, x);
}

HDPS_INLINE void TanhOfRow(const float* z, float* y, size_t cols) {
#pragma GCC ivdep  // y is z or apart from it.
  for (size_t j = 0; j < cols; ++j) y[j] = TanhOf(z[j]);
}

}  // namespace

void HostRows(VectorWidth width, const Activate& task, size_t first, size_t count) {
  if (task.kind == Activation::kTanh) {
    return WithVectors(
        width, [&]() __attribute__((always_inline)) {
          for (size_t r = first; r < first + count; ++r) {
            TanhOfRow(task.z.Row(r), task.y.Row(r), task.y.cols);
          }
        });
  }
  for (size_t r = first; r < first + count; ++r) {
    for (size_t j = 0; j < task.y.cols; ++j) task(r, j);
  }
}

}  // namespace hdps
