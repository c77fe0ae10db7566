// Has a loop over columns for each task: where all elements of a row are alike the task's own,
// and for sums over rows one that keeps a vector of sums in a register.
#include "kernels/host/cross_rows.h"

#include <algorithm>

namespace hdps {
namespace {

// Runs a task of elements, or of rows, as it is.
template <typename Task>
HDPS_INLINE void RunEach(const Task& task, size_t first, size_t count) {
  const size_t cols = task.Over().cols;
  for (size_t r = first; r < first + count; ++r) {
    if constexpr (requires { task(r, r); }) {
#pragma GCC ivdep  // A result is an operand or apart from it.
      for (size_t j = 0; j < cols; ++j) task(r, j);
    } else {
      task(r);
    }
  }
}
template <typename Task>
void RunVectors(VectorWidth width, const Task& task, size_t first, size_t count) {
  WithVectors(
      width, [&]() __attribute__((always_inline)) { RunEach(task, first, count); });
}

// A single column, in place of a vector of them.
struct OneFloat {
  using Vec = float;
};

// Calls body(column, FloatsOf<kWidth>()) for each whole vector of columns, then body(column,
// OneFloat()) for each column that is left.
template <VectorWidth kWidth, typename Body>
HDPS_INLINE void ForColumns(size_t cols, const Body& body) {
  constexpr size_t kFloats = sizeof(typename FloatsOf<kWidth>::Vec) / sizeof(float);
  size_t col = 0;
  for (; col + kFloats <= cols; col += kFloats) body(col, FloatsOf<kWidth>());
  for (; col < cols; ++col) body(col, OneFloat());
}

template <typename Of>
HDPS_INLINE typename Of::Vec& At(float* p) {
  return *reinterpret_cast<typename Of::Vec*>(p);
}
template <typename Of>
HDPS_INLINE const typename Of::Vec& At(const float* p) {
  return *reinterpret_cast<const typename Of::Vec*>(p);
}
template <typename Of>
HDPS_INLINE void WriteAt(float* to, Write write, const typename Of::Vec& value) {
  At<Of>(to) = write == Write::kAdd ? At<Of>(to) + value : value;
}

// Adds to `sum` the products of `count` rows of dz, `step` floats apart, with as many rows of x.
template <typename Of>
HDPS_INLINE void AddProducts(const float* dz, size_t step, const float* x, size_t x_stride,
                             size_t count, typename Of::Vec& sum) {
  for (size_t i = 0; i < count; ++i) sum += At<Of>(dz + i * step) * At<Of>(x + i * x_stride);
}

template <VectorWidth kWidth>
HDPS_INLINE void ProductsOfRow(const PairProducts& task, size_t h) {
  const float* const map = task.maps.Row(h);
  for (size_t f = task.Begin(h); f < task.first.rows; ++f) {
    const float* __restrict const with = task.first.Row(f);
    float* __restrict const to = task.z.Row(task.PlaceOf(h, f));
    ForColumns<kWidth>(
        task.z.cols, [&](size_t col, auto of) __attribute__((always_inline)) {
          using Of = decltype(of);
          At<Of>(to + col) = At<Of>(map + col) * At<Of>(with + col);
        });
  }
}

template <VectorWidth kWidth>
HDPS_INLINE void BackwardOfRow(const MapsBackward& task, size_t h) {
  const size_t vectors = task.first.rows;
  ForColumns<kWidth>(
      task.dmaps.cols, [&](size_t col, auto of) __attribute__((always_inline)) {
        using Of = decltype(of);
        typename Of::Vec sum{};
        AddProducts<Of>(task.dz.Row(h * vectors) + col, task.dz.stride, task.first.data + col,
                        task.first.stride, vectors, sum);
        At<Of>(task.dmaps.Row(h) + col) = sum;
      });
}

template <VectorWidth kWidth>
HDPS_INLINE void BackwardOfRow(const FirstBackward& task, size_t f) {
  ForColumns<kWidth>(
      task.dfirst.cols, [&](size_t col, auto of) __attribute__((always_inline)) {
        using Of = decltype(of);
        typename Of::Vec sum{};
        AddProducts<Of>(task.dz.Row(f) + col, task.dfirst.rows * task.dz.stride,
                        task.maps.data + col, task.maps.stride, task.maps.rows, sum);
        WriteAt<Of>(task.dfirst.Row(f) + col, task.write, sum);
      });
}

template <VectorWidth kWidth>
HDPS_INLINE void BackwardOfRow(const TwiceBackward& task, size_t f) {
  const size_t vectors = task.first.rows, stride = task.dz.stride;
  ForColumns<kWidth>(
      task.dfirst.cols, [&](size_t col, auto of) __attribute__((always_inline)) {
        using Of = decltype(of);
        typename Of::Vec sum{};
        size_t place = f;  // Of the pair (h, f), by one row of pairs less each time.
        for (size_t h = 0; h <= f; ++h) {
          sum += At<Of>(task.dz.data + place * stride + col) * At<Of>(task.first.Row(h) + col);
          place += vectors - 1 - h;
        }
        AddProducts<Of>(task.dz.Row(PairPlace(f, f, vectors)) + col, stride,
                        task.first.Row(f) + col, task.first.stride, vectors - f, sum);
        WriteAt<Of>(task.dfirst.Row(f) + col, task.write, sum);
      });
}

// Multiplies u with each x of a row. If u is one vector, each piece of it stays in a register over
// all x.
template <VectorWidth kWidth>
HDPS_INLINE void PairsOfRow(const BilinearRows& task, size_t r) {
  const float *const u = task.u.Row(r), *const x = task.x.Row(r);
  float* const y = task.y.Row(r);
  const bool shared = task.u.cols == task.dim;
  const size_t end = shared ? task.y.cols : 1;
  ForColumns<kWidth>(
      shared ? task.dim : task.y.cols, [&](size_t col, auto of) __attribute__((always_inline)) {
        using Of = decltype(of);
        const typename Of::Vec of_u = At<Of>(u + col);
        for (size_t at = 0; at < end; at += task.dim) {
          At<Of>(y + at + col) = of_u * At<Of>(x + at + col);
        }
      });
}

template <VectorWidth kWidth>
HDPS_INLINE void PairsOfRow(const BilinearRowsBackward& task, size_t r) {
  const float *const u = task.u.Row(r), *const x = task.x.Row(r), *const dy = task.dy.Row(r);
  float *const du = task.du.Row(r), *const dx = task.dx.data == nullptr ? nullptr : task.dx.Row(r);
  const bool shared = task.u.cols == task.dim;
  const size_t end = shared ? task.dy.cols : 1;
  ForColumns<kWidth>(
      shared ? task.dim : task.dy.cols, [&](size_t col, auto of) __attribute__((always_inline)) {
        using Of = decltype(of);
        typename Of::Vec sum = At<Of>(dy + col) * At<Of>(x + col);
        for (size_t at = task.dim; at < end; at += task.dim) {
          sum += At<Of>(dy + at + col) * At<Of>(x + at + col);
        }
        const typename Of::Vec of_u = At<Of>(u + col);
        At<Of>(du + col) = sum;
        for (size_t at = 0; dx != nullptr && at < end; at += task.dim) {
          WriteAt<Of>(dx + at + col, task.write_dx, At<Of>(dy + at + col) * of_u);
        }
      });
}

}  // namespace

void HostRows(VectorWidth width, const CrossRows& task, size_t first, size_t count) {
  RunVectors(width, task, first, count);
}
void HostRows(VectorWidth width, const CrossRowsBackward& task, size_t first, size_t count) {
  RunVectors(width, task, first, count);
}
void HostRows(VectorWidth width, const GateExperts& task, size_t first, size_t count) {
  RunVectors(width, task, first, count);
}
void HostRows(VectorWidth width, const GateExpertsBackward& task, size_t first, size_t count) {
  RunVectors(width, task, first, count);
}
void HostRows(VectorWidth width, const TanhBackward& task, size_t first, size_t count) {
  RunVectors(width, task, first, count);
}
void HostRows(VectorWidth width, const SumComponents& task, size_t first, size_t count) {
  RunVectors(width, task, first, count);
}

void HostRows(VectorWidth width, const PairProducts& task, size_t first, size_t count) {
  WithVectors(
      width, [&](auto copy) __attribute__((always_inline)) {
        for (size_t h = first; h < first + count; ++h) ProductsOfRow<copy.width>(task, h);
      });
}
void HostRows(VectorWidth width, const MapsBackward& task, size_t first, size_t count) {
  WithVectors(
      width, [&](auto copy) __attribute__((always_inline)) {
        for (size_t h = first; h < first + count; ++h) BackwardOfRow<copy.width>(task, h);
      });
}
void HostRows(VectorWidth width, const FirstBackward& task, size_t first, size_t count) {
  WithVectors(
      width, [&](auto copy) __attribute__((always_inline)) {
        for (size_t f = first; f < first + count; ++f) BackwardOfRow<copy.width>(task, f);
      });
}
void HostRows(VectorWidth width, const TwiceBackward& task, size_t first, size_t count) {
  WithVectors(
      width, [&](auto copy) __attribute__((always_inline)) {
        for (size_t f = first; f < first + count; ++f) BackwardOfRow<copy.width>(task, f);
      });
}
void HostRows(VectorWidth width, const BilinearRows& task, size_t first, size_t count) {
  WithVectors(
      width, [&](auto copy) __attribute__((always_inline)) {
        for (size_t r = first; r < first + count; ++r) PairsOfRow<copy.width>(task, r);
      });
}
void HostRows(VectorWidth width, const BilinearRowsBackward& task, size_t first, size_t count) {
  WithVectors(
      width, [&](auto copy) __attribute__((always_inline)) {
        for (size_t r = first; r < first + count; ++r) PairsOfRow<copy.width>(task, r);
      });
}

// Vectors are copied as wholes.
void HostRows(VectorWidth, const SplitVectors& task, size_t first, size_t count) {
  const size_t dim = task.dim;
  for (size_t f = first; f < first + count; ++f) {
    float* to = task.y.Row(f);
    const size_t rows = std::min(task.x.rows, task.y.cols / dim);
    for (size_t row = 0; row < rows; ++row) to = std::copy_n(task.x.Row(row) + f * dim, dim, to);
    std::fill(to, task.y.Row(f) + task.y.cols, 0.0f);
  }
}
void HostRows(VectorWidth width, const SplitVectorsBackward& task, size_t first, size_t count) {
  const size_t dim = task.dim;
  WithVectors(
      width, [&]() __attribute__((always_inline)) {
        for (size_t row = first; row < first + count; ++row) {
          for (size_t f = 0; f * dim < task.dx.cols; ++f) {
            const float* __restrict const from = task.dy.Row(f) + row * dim;
            float* __restrict const to = task.dx.Row(row) + f * dim;
            if (task.write_dx == Write::kAdd) {
              for (size_t d = 0; d < dim; ++d) to[d] += from[d];
            } else {
              for (size_t d = 0; d < dim; ++d) to[d] = from[d];
            }
          }
        }
      });
}
void HostRows(VectorWidth width, const SumComponentsBackward& task, size_t first, size_t count) {
  const size_t dim = task.dim, cols = task.dmaps.cols;
  WithVectors(
      width, [&]() __attribute__((always_inline)) {
        for (size_t h = first; h < first + count; ++h) {
          float* const to = task.dmaps.Row(h);
          for (size_t col = 0; col < cols; col += dim) {
            const size_t row = col / dim, end = std::min(col + dim, cols);
            const float value = row < task.dy.rows ? task.dy.Row(row)[h] : 0.0f;
            for (size_t j = col; j < end; ++j) WriteTo(to[j], task.write, value);
          }
        }
      });
}

}  // namespace hdps
