// Tests batch normalization, activations and dropout in one pass, on each device: elements bit for
// bit, sums of columns against doubles.
#include <cmath>
#include <limits>
#include <vector>

#include "common/job/activation.h"
#include "kernels/tasks/task_bodies.h"
#include "tests/error_bound.h"
#include "tests/kernels/dense_ops_suite.h"
#include "tests/kernels/random_matrix.h"

namespace hdps {
namespace {

constexpr size_t kGap = 3;  // As in TestMatrix.

DropoutMask Mask(double rate, uint64_t first_row, uint64_t stride) {
  DropoutMask mask;
  mask.stream = 77;
  mask.first_row = first_row;
  mask.row_stride = stride;
  mask.SetRate(rate);
  return mask;
}

RunChain Dropping(const DropoutMask& mask, ConstMatrix x, Matrix y) {
  RunChain task;
  task.chain.mask = mask;
  task.z = x;
  task.y = y;
  return task;
}

TEST_P(DenseOpsTest, DropoutKeepsItsShareAndScales) {
  constexpr size_t kRows = 300, kCols = 270;
  TestMatrix x(*ops_, kRows, kCols, 1), y(*ops_, kRows, kCols, 2);
  for (const double rate : {0.0, 0.3, 0.9}) {
    SCOPED_TRACE(rate);
    const DropoutMask mask = Mask(rate, 5, 1);
    const double rounded = mask.threshold / 65536.0;
    EXPECT_NEAR(rounded, rate, 0x1p-17);
    EXPECT_EQ(mask.scale, static_cast<float>(1 / (1 - rounded)));
    ops_->RunRows(Dropping(mask, x.device(), y.device()));
    const std::vector<float> values = y.Fetch();
    size_t kept = 0;
    std::vector<size_t> kept_of(4);  // Kept elements by their place in a draw.
    for (size_t r = 0; r < kRows; ++r) {
      for (size_t j = 0; j < kCols; ++j) {
        const float value = values[r * (kCols + kGap) + j];
        if (value == 0.0f) continue;
        ++kept;
        ++kept_of[j % 4];
        ASSERT_EQ(value, x.host().Row(r)[j] * mask.scale);
      }
    }
    const auto near_share = [&](size_t found, double trials) {
      const double share = 1 - rounded;
      EXPECT_LE(std::fabs(static_cast<double>(found) - trials * share),
                5 * std::sqrt(trials * share * rounded))
          << "within five deviations of the binomial distribution";
    };
    near_share(kept, kRows * kCols);
    for (size_t place = 0; place < 4; ++place) {
      near_share(kept_of[place], static_cast<double>(kRows * ((kCols + 3 - place) / 4)));
    }
  }
}

// The rows of a part drop what they drop in the whole; other rows, columns and streams drop
// something else.
TEST_P(DenseOpsTest, DropoutGoesByThePositionOfARow) {
  constexpr size_t kRows = 60, kCols = 140, kStride = kCols + kGap;
  TestMatrix ones(*ops_, kRows, kCols, 1), whole(*ops_, kRows, kCols, 2);
  std::fill(ones.values().begin(), ones.values().end(), 1.0f);
  ops_->Upload(ones.values(), ones.device().data);
  ops_->RunRows(Dropping(Mask(0.5, 100, 1), ones.device(), whole.device()));
  const std::vector<float> all = whole.Fetch();
  for (size_t part = 0; part < 3; ++part) {
    TestMatrix cut(*ops_, kRows / 3, kCols, 3);
    ops_->RunRows(
        Dropping(Mask(0.5, 100 + part, 3), ones.device().Rows(0, kRows / 3), cut.device()));
    const std::vector<float> of_part = cut.Fetch();
    for (size_t r = 0; r < kRows / 3; ++r) {
      for (size_t j = 0; j < kCols; ++j) {
        ASSERT_EQ(of_part[r * kStride + j], all[(part + 3 * r) * kStride + j]);
      }
    }
  }
  const auto row = [&](const std::vector<float>& values, size_t r) {
    const auto begin = values.begin() + static_cast<ptrdiff_t>(r * kStride);
    return std::vector<float>(begin, begin + kCols);
  };
  EXPECT_NE(row(all, 0), row(all, 1));
  const std::vector<float> first = row(all, 0);
  EXPECT_NE(std::vector<float>(first.begin(), first.begin() + 64),
            std::vector<float>(first.begin() + 64, first.begin() + 128));
  DropoutMask other = Mask(0.5, 100, 1);
  other.stream = 78;
  ops_->RunRows(Dropping(other, ones.device(), whole.device()));
  EXPECT_NE(row(whole.Fetch(), 0), row(all, 0));
}

// Shapes with rows and columns that fill no block or strip.
struct Shape {
  size_t rows, cols;
};
constexpr Shape kShapes[] = {{1, 1}, {67, 5}, {130, 128}, {150, 301}};

// The data of a chain, on the device and, for the plain elements, on the host.
class ChainData {
 public:
  ChainData(DenseOps& ops, const Shape& shape)
      : z(ops, shape.rows, shape.cols, 1),
        dy(ops, shape.rows, shape.cols, 2),
        out(ops, shape.rows, shape.cols, 3),
        columns(ops, 5, shape.cols, 4),
        sums(ops, 1, BlockSums{nullptr, shape.rows, shape.cols}.floats(), 5),
        shape_(shape) {}

  ElementChain Chain(bool norm, Activation activation, double rate, Matrix of) const {
    ElementChain chain;
    if (norm) {
      chain.mean = of.Row(0);
      chain.factor = of.Row(1);
      chain.bias = of.Row(2);
    }
    chain.activation = activation;
    chain.mask = Mask(rate, 9, 2);
    return chain;
  }
  BlockSums Sums(float* data) const { return {data, shape_.rows, shape_.cols}; }

  TestMatrix z, dy, out, columns, sums;

 private:
  const Shape shape_;
};

// Runs a task on the device, and element by element on the host.
template <typename Task>
void RunBoth(DenseOps& ops, const Task& device, const Task& host) {
  ops.RunRows(device);
  const Matrix over = host.Over();
  for (size_t r = 0; r < over.rows; ++r) {
    for (size_t j = 0; j < over.cols; ++j) host(r, j);
  }
}

TEST_P(DenseOpsTest, ChainsAreTheirElements) {
  for (const Shape& shape : kShapes) {
    for (const bool norm : {false, true}) {
      for (const Activation kind : {Activation::kNone, Activation::kRelu, Activation::kLeakyRelu}) {
        for (const double rate : {0.0, 0.4}) {
          SCOPED_TRACE(shape.cols * 100 + static_cast<size_t>(kind) * 10 + norm);
          ChainData d(*ops_, shape);
          const ElementChain there = d.Chain(norm, kind, rate, d.columns.device());
          const ElementChain here = d.Chain(norm, kind, rate, d.columns.host());
          RunBoth(*ops_, RunChain{there, d.z.device(), d.out.device()},
                  RunChain{here, d.z.host(), d.out.host()});
          ASSERT_EQ(d.out.Fetch(), d.out.values());
          if (!norm) {
            for (const Write write : {Write::kOver, Write::kAdd}) {
              RunBoth(*ops_,
                      RunChainBackward{there, d.z.device(), d.dy.device(), write, d.out.device()},
                      RunChainBackward{here, d.z.host(), d.dy.host(), write, d.out.host()});
              ASSERT_EQ(d.out.Fetch(), d.out.values());
            }
            continue;
          }
          RunBoth(
              *ops_,
              SumChainBackward{there, d.z.device(), d.dy.device(), d.Sums(d.sums.device().data)},
              SumChainBackward{here, d.z.host(), d.dy.host(), d.Sums(d.sums.host().data)});
          ASSERT_EQ(d.dy.Fetch(), d.dy.values());
          ASSERT_EQ(d.sums.Fetch(), d.sums.values());
        }
      }
    }
  }
}

TEST_P(DenseOpsTest, NormalizedColumnsGoBackByTheirElements) {
  for (const Shape& shape : kShapes) {
    ChainData d(*ops_, shape);
    const auto backward = [&](Matrix columns, Matrix z, Matrix dh, Write write, Matrix dz) {
      return NormalizeColumnsBackward{
          columns.Row(0), columns.Row(1), columns.Row(3), columns.Row(4), z, dh, write, dz};
    };
    for (const Write write : {Write::kOver, Write::kAdd}) {
      RunBoth(*ops_,
              backward(d.columns.device(), d.z.device(), d.dy.device(), write, d.out.device()),
              backward(d.columns.host(), d.z.host(), d.dy.host(), write, d.out.host()));
      ASSERT_EQ(d.out.Fetch(), d.out.values());
    }
    // In place.
    RunBoth(*ops_,
            backward(d.columns.device(), d.z.device(), d.dy.device(), Write::kOver, d.dy.device()),
            backward(d.columns.host(), d.z.host(), d.dy.host(), Write::kOver, d.dy.host()));
    ASSERT_EQ(d.dy.Fetch(), d.dy.values());
    RunBoth(*ops_, SumColumns{d.z.device(), d.Sums(d.sums.device().data)},
            SumColumns{d.z.host(), d.Sums(d.sums.host().data)});
    ASSERT_EQ(d.sums.Fetch(), d.sums.values());
  }
}

// Mean and variance of columns far from zero, which a float sum of squares would lose.
TEST_P(DenseOpsTest, ColumnsHaveTheirStatistics) {
  for (const size_t rows : {2u, 64u, 1000u}) {
    constexpr size_t kCols = 130;
    SCOPED_TRACE(rows);
    TestMatrix z(*ops_, rows, kCols, 1), columns(*ops_, 7, kCols, 2, 0);
    for (size_t r = 0; r < rows; ++r) {
      for (size_t j = 0; j < kCols; ++j) z.host().Row(r)[j] += static_cast<float>(j);
    }
    ops_->Upload(z.values(), z.device().data);
    DeviceArray block_sums(ops_.get()), totals(ops_.get());
    BlockSums sums{nullptr, rows, kCols};
    sums.data = block_sums.Reserve(sums.floats());
    auto* const total = reinterpret_cast<double*>(totals.Reserve(4 * kCols));
    ops_->RunRows(SumColumns{z.device(), sums});
    ops_->RunRows(AddBlockSums{sums, true, total});
    ColumnStatistics task;
    task.totals = total;
    task.count = static_cast<double>(rows);
    task.epsilon = 1e-5f;
    task.gain = columns.device().Row(0);
    task.running_mean = columns.device().Row(1);
    task.running_variance = columns.device().Row(2);
    task.mean = columns.device().Row(3);
    task.variance = columns.device().Row(4);
    task.scale = columns.device().Row(5);
    task.factor = columns.device().Row(6);
    task.cols = kCols;
    ops_->RunRows(task);
    const std::vector<float> found = columns.Fetch();
    for (size_t j = 0; j < kCols; ++j) {
      double mean = 0, squares = 0, size = 0;
      const auto n = static_cast<double>(rows);
      for (size_t r = 0; r < rows; ++r) mean += double{z.host().Row(r)[j]} / n;
      for (size_t r = 0; r < rows; ++r) {
        const double apart = double{z.host().Row(r)[j]} - mean;
        squares += apart * apart;
        size += std::fabs(double{z.host().Row(r)[j]}) / n;
      }
      // A block's sum has up to kSumRows roundings, and one more when it is stored.
      const double off = Gamma(kSumRows + 1) * size;
      ASSERT_NEAR(double{found[3 * kCols + j]}, mean, off);
      // A mean that is off by d adds n d^2. A distance has one rounding, its square two, the sum
      // kSumRows. Doubles lose some 2^-52 of the squares of z itself.
      const double variance = squares / (n - 1);
      const double bound = Gamma(kSumRows + 8) * variance + 2 * off * off * n / (n - 1) +
                           2 * off * std::sqrt(variance) + 16 * 0x1p-52 * size * size * n / (n - 1);
      ASSERT_NEAR(double{found[4 * kCols + j]}, variance, bound) << j;
      const double scale = 1 / std::sqrt(squares / n + 1e-5);
      ASSERT_NEAR(double{found[5 * kCols + j]}, scale,
                  scale * (bound / (squares / n + 1e-5) + Gamma(2)))
          << j;
      ASSERT_EQ(found[6 * kCols + j], found[5 * kCols + j] * columns.host().Row(0)[j]);
    }
    task.count = 1;
    ops_->RunRows(task);
    const std::vector<float> running = columns.Fetch();
    for (size_t j = 0; j < kCols; ++j) {
      ASSERT_EQ(running[3 * kCols + j], columns.host().Row(1)[j]);
      ASSERT_EQ(running[4 * kCols + j], columns.host().Row(2)[j]);
    }
  }
}

}  // namespace
}  // namespace hdps
