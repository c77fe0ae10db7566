// Batch normalization (Ioffe and Szegedy 2015, algorithm 1): sums over the rows of each column, and
// the statistics and gradients computed from them.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>

#include "kernels/tasks/element_chain.h"
#include "kernels/tasks/row_task.h"

namespace hdps {

// Rows in a block. Columns are summed over blocks of this many rows, in order of row in float;
// blocks are summed in order in double. The error of a sum is thus at most kSumRows roundings of
// the size of its terms, for any number of rows.
inline constexpr size_t kSumRows = 64;

// The sums of the blocks of a matrix with `rows` rows, two numbers a column.
struct BlockSums {
  float* data = nullptr;  // [blocks, 2, cols]
  size_t rows = 0, cols = 0;

  HDPS_ROW_TASK size_t blocks() const { return (rows + kSumRows - 1) / kSumRows; }
  HDPS_ROW_TASK size_t RowsOf(size_t block) const {
    const size_t left = rows - block * kSumRows;
    return left < kSumRows ? left : kSumRows;
  }
  HDPS_ROW_TASK float* First(size_t block) const { return data + 2 * block * cols; }
  HDPS_ROW_TASK float* Second(size_t block) const { return First(block) + cols; }
  Matrix Over() const { return {nullptr, blocks(), cols, cols}; }
  size_t floats() const { return 2 * blocks() * cols; }
};

// Computes for each block and column the sum of z, and of its squared distances from the block's
// mean.
struct SumColumns {
  ConstMatrix z;
  BlockSums sums;
  Matrix Over() const { return sums.Over(); }
  size_t FloatsARow() const { return kSumRows * sums.cols; }

  HDPS_ROW_TASK void operator()(size_t block, size_t col) const {
    const size_t first = block * kSumRows, rows = sums.RowsOf(block);
    float sum = 0.0f, squares = 0.0f;
    for (size_t r = first; r < first + rows; ++r) sum += ElementOf(z, r, col);
    const float mean = sum / static_cast<float>(rows);
    for (size_t r = first; r < first + rows; ++r) {
      const float apart = ElementOf(z, r, col) - mean;
      squares += apart * apart;
    }
    sums.First(block)[col] = sum;
    sums.Second(block)[col] = squares;
  }
};

// Turns the gradient of y into that of h (ElementChain), in place, and sums for each block and
// column this gradient, and this gradient times z - mean.
struct SumChainBackward {
  ElementChain chain;
  ConstMatrix z;
  Matrix dy;
  BlockSums sums;
  Matrix Over() const { return sums.Over(); }
  size_t FloatsARow() const { return kSumRows * sums.cols; }

  HDPS_ROW_TASK void operator()(size_t block, size_t col) const {
    const size_t first = block * kSumRows;
    float sum = 0.0f, along = 0.0f;
    for (size_t r = first; r < first + sums.RowsOf(block); ++r) {
      const float at = ElementOf(z, r, col);
      const float gradient = chain.InnerGradientAt(ElementOf(dy, r, col), at, r, col);
      ElementOf(dy, r, col) = gradient;
      sum += gradient;
      along += gradient * (at - chain.mean[col]);
    }
    sums.First(block)[col] = sum;
    sums.Second(block)[col] = along;
  }
};

// totals [2, cols]: both sums of each column over all blocks; with `squares` the second one is the
// sum of the squares of z.
struct AddBlockSums {
  BlockSums sums;
  bool squares = false;
  double* totals = nullptr;
  Matrix Over() const { return {nullptr, 1, sums.cols, sums.cols}; }
  size_t FloatsARow() const { return sums.floats(); }

  HDPS_ROW_TASK void operator()(size_t, size_t col) const {
    double first = 0, second = 0;
    for (size_t block = 0; block < sums.blocks(); ++block) {
      const auto sum = static_cast<double>(sums.First(block)[col]);
      first += sum;
      second += static_cast<double>(sums.Second(block)[col]);
      if (squares) second += sum * sum / static_cast<double>(sums.RowsOf(block));
    }
    totals[col] = first;
    totals[sums.cols + col] = second;
  }
};

// Computes what normalizes a column: from sums over `count` rows or, if count is at most one, from
// the running statistics.
struct ColumnStatistics {
  const double* totals = nullptr;  // [2, cols]: sums of z and of its squares.
  double count = 0;
  float epsilon = 0.0f;
  const float* gain = nullptr;
  const float* running_mean = nullptr;
  const float* running_variance = nullptr;
  // [cols] each. The variance is unbiased, as PyTorch keeps it.
  float* mean = nullptr;
  float* variance = nullptr;
  float* scale = nullptr;   // One divided by the root of the biased variance + epsilon.
  float* factor = nullptr;  // gain * scale
  size_t cols = 0;
  Matrix Over() const { return {nullptr, 1, cols, cols}; }

  HDPS_ROW_TASK void operator()(size_t, size_t col) const {
    double at = static_cast<double>(running_mean[col]);
    double spread = static_cast<double>(running_variance[col]);
    double unbiased = spread;
    if (count > 1) {
      at = totals[col] / count;
      const double squares = totals[cols + col] - totals[col] * at;
      spread = squares > 0 ? squares / count : 0.0;
      unbiased = spread * (count / (count - 1));
    }
    const double inverse = 1.0 / std::sqrt(spread + static_cast<double>(epsilon));
    mean[col] = static_cast<float>(at);
    variance[col] = static_cast<float>(unbiased);
    scale[col] = static_cast<float>(inverse);
    factor[col] = gain[col] * scale[col];
  }
};

// The gradients of a column's parameters. Those of the running statistics are rows * (running -
// that of the batch), so that plain descent with rate 1 - momentum makes them an average.
struct ColumnGradients {
  const double* own = nullptr;     // [2, cols]: the results of SumChainBackward over the own rows,
  const double* totals = nullptr;  // and over all rows whose statistics were used.
  double rows = 0, count = 0;   // Numbers of these rows; count <= 1: running statistics were used.
  const float* mean = nullptr;  // The batch's statistics.
  const float* variance = nullptr;
  const float* scale = nullptr;
  const float* running_mean = nullptr;
  const float* running_variance = nullptr;
  float* gain_gradient = nullptr;  // [cols], like all of these.
  float* bias_gradient = nullptr;
  float* mean_gradient = nullptr;
  float* variance_gradient = nullptr;
  float* shift = nullptr;  // Mean of the gradient of h.
  float* along = nullptr;  // Its component along z - mean, for z - mean = 1.
  size_t cols = 0;
  Matrix Over() const { return {nullptr, 1, cols, cols}; }

  HDPS_ROW_TASK void operator()(size_t, size_t col) const {
    const auto inverse = static_cast<double>(scale[col]);
    bias_gradient[col] = static_cast<float>(own[col]);
    gain_gradient[col] = static_cast<float>(own[cols + col] * inverse);
    const bool of_batch = count > 1;
    const auto n = static_cast<float>(rows);
    mean_gradient[col] = of_batch ? n * (running_mean[col] - mean[col]) : 0.0f;
    variance_gradient[col] = of_batch ? n * (running_variance[col] - variance[col]) : 0.0f;
    shift[col] = of_batch ? static_cast<float>(totals[col] / count) : 0.0f;
    along[col] =
        of_batch ? static_cast<float>(totals[cols + col] / count * inverse * inverse) : 0.0f;
  }
};

// dz (+)= factor * (dh - shift - (z - mean) * along). dz may be dh.
struct NormalizeColumnsBackward {
  const float* mean = nullptr;
  const float* factor = nullptr;
  const float* shift = nullptr;
  const float* along = nullptr;
  ConstMatrix z, dh;
  Write write = Write::kOver;
  Matrix dz;
  Matrix Over() const { return dz; }
  HDPS_ROW_TASK void operator()(size_t row, size_t col) const {
    const float apart = ElementOf(z, row, col) - mean[col];
    const float gradient =
        factor[col] * (ElementOf(dh, row, col) - shift[col] - apart * along[col]);
    WriteTo(ElementOf(dz, row, col), write, gradient);
  }
};

}  // namespace hdps
