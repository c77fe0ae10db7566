// Tests row tasks on each device against their formulas in double.
#include <cmath>
#include <limits>

#include "common/job/activation.h"
#include "common/job/optimizers/optimizer_settings.h"
#include "tests/kernels/dense_ops_suite.h"
#include "tests/kernels/random_matrix.h"

namespace hdps {
namespace {

constexpr double kEpsilon = std::numeric_limits<float>::epsilon();

double PlainActivation(Activation kind, double z) {
  switch (kind) {
    case Activation::kNone:
      return z;
    case Activation::kRelu:
      return std::max(z, 0.0);
    case Activation::kSigmoid:
      return 1 / (1 + std::exp(-z));
    case Activation::kTanh:
      return std::tanh(z);
    case Activation::kGelu:
      return z * 0.5 * std::erfc(-z / std::sqrt(2.0));
    case Activation::kLeakyRelu:
      return z > 0 ? z : 0.01 * z;
  }
  return 0;
}

constexpr Activation kActivations[] = {Activation::kNone,    Activation::kRelu,
                                       Activation::kSigmoid, Activation::kTanh,
                                       Activation::kGelu,    Activation::kLeakyRelu};

// Values from -6 to 6, with zero and both limits of exp's range.
void Spread(DenseOps& ops, TestMatrix* z) {
  for (float& value : z->values()) value *= 6.0f;
  z->host().Row(0)[0] = 0.0f;
  z->host().Row(0)[1] = 200.0f;
  z->host().Row(0)[2] = -200.0f;
  ops.Upload(z->values(), z->device().data);
}

// Each value has at most eight roundings of numbers up to (1 + |z|)^2.
double Allowed(double z) { return 8 * kEpsilon * (1 + std::fabs(z)) * (1 + std::fabs(z)); }

TEST_P(DenseOpsTest, ActivationsAreTheirFormulas) {
  for (const Activation kind : kActivations) {
    SCOPED_TRACE(static_cast<int>(kind));
    TestMatrix z(*ops_, 67, 41, 1), y(*ops_, 67, 41, 2);
    Spread(*ops_, &z);
    ops_->RunRows(Activate{kind, z.device(), y.device()});
    const std::vector<float> actual = y.Fetch();
    for (size_t r = 0; r < 67; ++r) {
      for (size_t j = 0; j < 41; ++j) {
        const double at = double{z.host().Row(r)[j]};
        y.host().Row(r)[j] = actual[r * 44 + j];
        ASSERT_NEAR(double{actual[r * 44 + j]}, PlainActivation(kind, at), Allowed(at)) << at;
      }
    }
    EXPECT_EQ(actual, y.values()) << "the gaps between the rows stay";
  }
}

// The error of central differences: step^2 / 6 times the third derivative, which is below 2 for
// all, and the rounding of doubles of size (1 + |z|) over the step.
TEST_P(DenseOpsTest, ActivationsHaveTheirSlopes) {
  constexpr double kStep = 1e-5;
  for (const Activation kind : kActivations) {
    SCOPED_TRACE(static_cast<int>(kind));
    TestMatrix z(*ops_, 67, 41, 1), dy(*ops_, 67, 41, 2);
    Spread(*ops_, &z);
    ops_->RunRows(ActivateBackward{kind, z.device(), dy.device()});
    const std::vector<float> actual = dy.Fetch();
    for (size_t r = 0; r < 67; ++r) {
      for (size_t j = 0; j < 41; ++j) {
        const double at = double{z.host().Row(r)[j]};
        if (std::fabs(at) <= kStep) continue;  // At a kink either side is right.
        const double slope =
            (PlainActivation(kind, at + kStep) - PlainActivation(kind, at - kStep)) / (2 * kStep);
        const double error =
            Allowed(at) + kStep * kStep +
            4 * std::numeric_limits<double>::epsilon() * (1 + std::fabs(at)) / kStep;
        ASSERT_NEAR(double{actual[r * 44 + j]}, double{dy.host().Row(r)[j]} * slope, error) << at;
      }
    }
  }
}

// The expected result of NormalizeRows, and the sizes that determine its errors.
struct PlainNorm {
  std::vector<double> normal;
  double scale = 0;
  PlainNorm(const float* x, size_t cols, double epsilon) : normal(cols) {
    double mean = 0, variance = 0;
    for (size_t j = 0; j < cols; ++j) mean += double{x[j]} / static_cast<double>(cols);
    for (size_t j = 0; j < cols; ++j) {
      variance += (double{x[j]} - mean) * (double{x[j]} - mean) / static_cast<double>(cols);
    }
    scale = 1 / std::sqrt(variance + epsilon);
    for (size_t j = 0; j < cols; ++j) normal[j] = (double{x[j]} - mean) * scale;
  }
};

TEST_P(DenseOpsTest, RowsAreNormalized) {
  constexpr size_t kRows = 53, kCols = 37, kStride = kCols + 3;
  TestMatrix x(*ops_, kRows, kCols, 1), normal(*ops_, kRows, kCols, 2), y(*ops_, kRows, kCols, 3);
  TestMatrix gain(*ops_, 1, kCols, 4), bias(*ops_, 1, kCols, 5), scales(*ops_, 1, kRows, 6);
  std::fill_n(x.host().Row(7), kCols, 0.25f);  // A row without variance.
  ops_->Upload(x.values(), x.device().data);
  NormalizeRows task;
  task.epsilon = 1e-5f;
  task.gain = gain.device().data;
  task.bias = bias.device().data;
  task.x = x.device();
  task.normal = normal.device();
  task.y = y.device();
  task.scales = scales.device().data;
  ops_->RunRows(task);
  const std::vector<float> normals = normal.Fetch(), values = y.Fetch(), factors = scales.Fetch();
  for (size_t r = 0; r < kRows; ++r) {
    const PlainNorm plain(x.host().Row(r), kCols, double{task.epsilon});
    ASSERT_NEAR(double{factors[r]}, plain.scale, kEpsilon * plain.scale);
    for (size_t j = 0; j < kCols; ++j) {
      const double product = plain.normal[j] * double{gain.host().data[j]};
      const double size = std::fabs(product) + std::fabs(double{bias.host().data[j]});
      // Sums are in double, so only single roundings remain.
      ASSERT_NEAR(double{normals[r * kStride + j]}, plain.normal[j],
                  kEpsilon * std::fabs(plain.normal[j]) + 1e-13 * plain.scale);
      ASSERT_NEAR(double{values[r * kStride + j]}, product + double{bias.host().data[j]},
                  3 * kEpsilon * size + 1e-13 * plain.scale);
    }
  }
}

TEST_P(DenseOpsTest, NormalizedRowsGiveTheirGradients) {
  constexpr size_t kRows = 53, kCols = 37, kStride = kCols + 3;
  for (const Write write : {Write::kOver, Write::kAdd}) {
    TestMatrix x(*ops_, kRows, kCols, 1), normal(*ops_, kRows, kCols, 2), y(*ops_, kRows, kCols, 3);
    TestMatrix gain(*ops_, 1, kCols, 4), bias(*ops_, 1, kCols, 5), scales(*ops_, 1, kRows, 6);
    TestMatrix dy(*ops_, kRows, kCols, 7), dx(*ops_, kRows, kCols, 8);
    ops_->RunRows(NormalizeRows{1e-5f, gain.device().data, bias.device().data, x.device(),
                                normal.device(), y.device(), scales.device().data});
    ops_->RunRows(NormalizeRowsBackward{gain.device().data, scales.device().data, dy.device(),
                                        write, dx.device(), normal.device()});
    const std::vector<float> actual = dx.Fetch(), products = normal.Fetch();
    for (size_t r = 0; r < kRows; ++r) {
      const PlainNorm plain(x.host().Row(r), kCols, 1e-5);
      const auto g = [&](size_t j) {
        return double{dy.host().Row(r)[j]} * double{gain.host().data[j]};
      };
      double mean = 0, share = 0, mean_size = 0, share_size = 0;
      for (size_t j = 0; j < kCols; ++j) {
        mean += g(j) / kCols;
        share += g(j) * plain.normal[j] / kCols;
        mean_size += std::fabs(g(j)) / kCols;
        share_size += std::fabs(g(j) * plain.normal[j]) / kCols;
      }
      for (size_t j = 0; j < kCols; ++j) {
        const double before = write == Write::kAdd ? double{dx.host().Row(r)[j]} : 0.0;
        const double wanted = before + plain.scale * (g(j) - mean - plain.normal[j] * share);
        // Each term was rounded at most eight times before the sum.
        const double size =
            std::fabs(before) +
            plain.scale * (std::fabs(g(j)) + mean_size + std::fabs(plain.normal[j]) * share_size);
        ASSERT_NEAR(double{actual[r * kStride + j]}, wanted, 8 * kEpsilon * size);
        const double product = double{dy.host().Row(r)[j]} * plain.normal[j];
        ASSERT_NEAR(double{products[r * kStride + j]}, product,
                    2 * kEpsilon * std::fabs(product) + 1e-12);
      }
    }
  }
}

}  // namespace
}  // namespace hdps
