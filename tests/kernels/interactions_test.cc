// Tests factorization machine, cross layer and losses on each device against their definitions.
#include <cmath>
#include <limits>
#include <vector>

#include "common/job/spec/loss_kind.h"
#include "tests/error_bound.h"
#include "tests/kernels/dense_ops_suite.h"
#include "tests/kernels/random_matrix.h"

namespace hdps {
namespace {

constexpr size_t kVectors = 7, kDim = 12;

double DotOf(const float* x, const float* y) {
  double sum = 0;
  for (size_t d = 0; d < kDim; ++d) sum += double{x[d]} * double{y[d]};
  return sum;
}

// Sums of vectors have kVectors roundings each, their squares twice as many, and there are kDim of
// them.
TEST_P(DenseOpsTest, FmIsTheSumOverAllPairs) {
  TestMatrix x(*ops_, 211, kVectors * kDim, 1), y(*ops_, 211, 1, 2);
  ops_->RunRows(FmRows{kDim, x.device(), y.device()});
  const std::vector<float> actual = y.Fetch();
  const Sizes sizes(x);
  for (size_t i = 0; i < 211; ++i) {
    double sum = 0, size = 0;
    for (size_t a = 0; a < kVectors; ++a) {
      const float *v = x.host().Row(i), *v_size = sizes.view().Row(i);
      for (size_t b = 0; b < kVectors; ++b) {
        if (b < a) sum += DotOf(v + a * kDim, v + b * kDim);
        size += DotOf(v_size + a * kDim, v_size + b * kDim);
      }
    }
    ASSERT_NEAR(actual[i * 4], sum, SumErrorBound(2 * kVectors + kDim + 3, size)) << i;
  }
}

TEST_P(DenseOpsTest, FmBackwardIsTheSumOfTheOthers) {
  for (const Write write : {Write::kOver, Write::kAdd}) {
    TestMatrix x(*ops_, 211, kVectors * kDim, 1), dx(*ops_, 211, kVectors * kDim, 2);
    TestMatrix dy(*ops_, 211, 1, 3);
    ops_->RunRows(FmRowsBackward{kDim, x.device(), dy.device(), write, dx.device()});
    const std::vector<float> actual = dx.Fetch();
    for (size_t i = 0; i < 211; ++i) {
      const float* const v = x.host().Row(i);
      for (size_t at = 0; at < kVectors * kDim; ++at) {
        double sum = 0, size = 0;
        for (size_t other = at % kDim; other < kVectors * kDim; other += kDim) {
          if (other != at) sum += double{v[other]};
          size += double{std::fabs(v[other])} * (other == at ? 2 : 1);
        }
        const double factor = double{dy.host().Row(i)[0]};
        const double before = write == Write::kAdd ? double{dx.host().Row(i)[at]} : 0;
        ASSERT_NEAR(actual[i * dx.host().stride + at], before + factor * sum,
                    SumErrorBound(kVectors + 3, std::fabs(before) + std::fabs(factor) * size));
      }
    }
  }
}

TEST_P(DenseOpsTest, CrossIsExact) {
  for (const Write write : {Write::kOver, Write::kAdd}) {
    TestMatrix x0(*ops_, 50, 61, 5), u(*ops_, 50, 61, 6), x(*ops_, 50, 61, 7);
    TestMatrix y(*ops_, 50, 61, 8), du(*ops_, 50, 61, 9), dx0(*ops_, 50, 61, 10);
    ops_->RunRows(CrossRows{x0.device(), u.device(), x.device(), y.device()});
    ops_->RunRows(
        CrossRowsBackward{x0.device(), u.device(), x.device(), du.device(), write, dx0.device()});
    for (size_t r = 0; r < 50; ++r) {
      for (size_t j = 0; j < 61; ++j) {
        const float first = x0.host().Row(r)[j], product = u.host().Row(r)[j];
        const float d = x.host().Row(r)[j];
        float& of_first = dx0.host().Row(r)[j];
        y.host().Row(r)[j] = first * product + d;
        du.host().Row(r)[j] = d * first;
        of_first = (write == Write::kAdd ? of_first : 0.0f) + d * product;
      }
    }
    EXPECT_EQ(y.Fetch(), y.values());
    EXPECT_EQ(du.Fetch(), du.values());
    EXPECT_EQ(dx0.Fetch(), dx0.values());
  }
}

// Computes the definition in double, for logits so small that nothing overflows.
double PlainLoss(LossKind kind, const float* z, size_t classes, size_t label,
                 std::vector<double>* probabilities) {
  if (kind == LossKind::kLogloss) {
    *probabilities = {1 / (1 + std::exp(-double{z[0]}))};
    return -std::log(label == 1 ? probabilities->at(0) : 1 - probabilities->at(0));
  }
  double total = 0;
  for (size_t c = 0; c < classes; ++c) total += std::exp(double{z[c]});
  probabilities->clear();
  for (size_t c = 0; c < classes; ++c) probabilities->push_back(std::exp(double{z[c]}) / total);
  return -std::log(probabilities->at(label));
}

// Computes a loss from logits and gradient on the ops' device, and labels and probabilities on the
// host.
double LossOf(DenseOps& ops, LossKind kind, ConstMatrix logits, const std::vector<float>& labels,
              Matrix gradient, std::span<float> probabilities) {
  DeviceArray there(&ops);
  ops.Upload(labels, there.Reserve(labels.size()));
  double sum = -1;
  ops.Loss({.kind = kind, .labels = there.data()}, logits, gradient, probabilities, &sum);
  ops.Fetch();
  return sum;
}

// Figures are rounded to float once; a loss in double has at most some forty operations.
TEST_P(DenseOpsTest, LossesAreTheirDefinitions) {
  constexpr size_t kRows = 77;
  for (const LossKind kind : {LossKind::kLogloss, LossKind::kSoftmax}) {
    const size_t classes = kind == LossKind::kLogloss ? 1 : 10;
    TestMatrix logits(*ops_, kRows, classes, 1), gradient(*ops_, kRows, classes, 2);
    std::vector<float> labels(kRows), probabilities(kRows * classes);
    for (size_t i = 0; i < kRows; ++i) {
      labels[i] = static_cast<float>(i % (classes == 1 ? 2 : classes));
    }
    const double sum =
        LossOf(*ops_, kind, logits.device(), labels, gradient.device(), probabilities);
    const std::vector<float> gradients = gradient.Fetch();
    const double once = SumErrorBound(2, 1);
    double wanted_sum = 0;
    std::vector<double> wanted;
    for (size_t i = 0; i < kRows; ++i) {
      const auto label = static_cast<size_t>(labels[i]);
      wanted_sum += PlainLoss(kind, logits.host().Row(i), classes, label, &wanted);
      for (size_t c = 0; c < classes; ++c) {
        const bool is_label = classes == 1 ? label == 1 : label == c;
        ASSERT_NEAR(probabilities[i * classes + c], wanted[c], once);
        ASSERT_NEAR(gradients[i * (classes + 3) + c], wanted[c] - (is_label ? 1 : 0), once);
      }
    }
    const double allowed = (kRows + 40) * std::numeric_limits<double>::epsilon() * wanted_sum;
    EXPECT_NEAR(sum, wanted_sum, allowed);
    EXPECT_EQ(LossOf(*ops_, kind, logits.device(), labels, {}, {}), sum);
  }
}

TEST_P(DenseOpsTest, LossesStayFiniteAtTheEnds) {
  const std::vector<float> given = {-200.0f, 200.0f, 0.0f, -200.0f};
  const std::vector<float> labels = {0, 1, 1, 1};
  TestMatrix logits(*ops_, 1, 4, 1), gradient(*ops_, 1, 4, 2);
  ops_->Upload(given, logits.device().data);
  const Matrix z{logits.device().data, 4, 1, 1}, g{gradient.device().data, 4, 1, 1};
  std::vector<float> probabilities(4);
  const double sum = LossOf(*ops_, LossKind::kLogloss, z, labels, g, probabilities);
  EXPECT_NEAR(sum, std::log(2.0) + 200, 1024 * std::numeric_limits<double>::epsilon());
  EXPECT_EQ(gradient.Fetch()[3], -1.0f);
  EXPECT_EQ(probabilities, (std::vector<float>{0, 1, 0.5f, 0}));

  const std::vector<float> wide = {300.0f, -300.0f, 0.0f}, label = {1};
  ops_->Upload(wide, logits.device().data);
  const Matrix row{logits.device().data, 1, 3, 3}, to{gradient.device().data, 1, 3, 3};
  EXPECT_EQ(LossOf(*ops_, LossKind::kSoftmax, row, label, to, {}), 600);
  const std::vector<float> gradients = gradient.Fetch();
  EXPECT_EQ(std::vector<float>(gradients.begin(), gradients.begin() + 3),
            (std::vector<float>{1, -1, 0}));
}

}  // namespace
}  // namespace hdps
