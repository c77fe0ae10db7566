// Row tasks on each device against their formulas in double.
#include <cmath>
#include <limits>

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

// Values from -6 to 6, with zero and both ends of what exp can take.
void Spread(DenseOps& ops, TestMatrix* z) {
  for (float& value : z->values()) value *= 6.0f;
  z->host().Row(0)[0] = 0.0f;
  z->host().Row(0)[1] = 200.0f;
  z->host().Row(0)[2] = -200.0f;
  ops.Upload(z->values(), z->device().data);
}

// Each value is made of at most eight roundings, by numbers of at most (1 + |z|)^2.
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

// Central differences of the formula: step^2 / 6 times the third derivative, below 2 for all of
// them, and the rounding of doubles of size (1 + |z|) over the step.
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
        if (std::fabs(at) <= kStep) continue;  // At a kink either side will do.
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

}  // namespace
}  // namespace hdps
