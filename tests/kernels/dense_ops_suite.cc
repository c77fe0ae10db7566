// Tests each operation of DenseOps against its plain loop, on views with gaps between the rows.
#include "tests/kernels/dense_ops_suite.h"

#include <cmath>
#include <limits>
#include <tuple>

#include "common/job/spec/pooling.h"
#include "tests/error_bound.h"
#include "tests/kernels/plain_gemm.h"
#include "tests/kernels/random_matrix.h"

namespace hdps {
namespace {

// For results that differ only in the last bits of a few operations.
void ExpectNear(const std::vector<float>& actual, const std::vector<float>& expected,
                float tolerance) {
  ASSERT_EQ(actual.size(), expected.size());
  size_t wrong = 0;
  for (size_t i = 0; i < actual.size(); ++i) {
    const float allowed = tolerance * std::max(1.0f, std::fabs(expected[i]));
    if (std::fabs(actual[i] - expected[i]) <= allowed) continue;
    if (++wrong > 5) FAIL() << "and more";
    ADD_FAILURE() << "at " << i << ": " << actual[i] << ", expected " << expected[i];
  }
}

// Expects a sum of `terms` products per element, with absolute values that add up to `sizes`, to
// equal the same sum in another order. The gaps between rows must be unchanged.
void ExpectSums(const TestMatrix& actual, Matrix expected, size_t terms, ConstMatrix sizes) {
  const std::vector<float> fetched = actual.Fetch();
  for (size_t r = 0; r < expected.rows; ++r) {
    for (size_t j = 0; j < expected.stride; ++j) {
      const float wanted = expected.Row(r)[j];
      const double bound = j < expected.cols ? SumsErrorBound(terms, sizes.Row(r)[j]) : 0;
      ASSERT_NEAR(fetched[r * expected.stride + j], wanted, bound) << "row " << r << " at " << j;
    }
  }
}

using Shape = std::tuple<size_t, size_t, size_t>;  // rows, cols, depth

TEST_P(DenseOpsTest, GemmAgreesWithPlainLoop) {
  for (const auto& [m, n, k] : {Shape{1, 1, 1}, Shape{3, 1, 17}, Shape{65, 130, 33},
                                Shape{300, 257, 70}, Shape{7, 600, 5}, Shape{128, 10, 0}}) {
    for (int flags = 0; flags < 32; ++flags) {
      GemmSpec spec;
      spec.transpose_a = (flags & 1) != 0;
      spec.transpose_b = (flags & 2) != 0;
      spec.write = (flags & 4) != 0 ? Write::kAdd : Write::kOver;
      spec.relu = (flags & 8) != 0;
      TestMatrix a(*ops_, spec.transpose_a ? k : m, spec.transpose_a ? m : k, 1);
      TestMatrix b(*ops_, spec.transpose_b ? n : k, spec.transpose_b ? k : n, 2);
      TestMatrix c(*ops_, m, n, 3), bias(*ops_, 1, n, 4);
      GemmSpec plain = spec;
      spec.bias = (flags & 16) != 0 ? bias.device().data : nullptr;
      plain.bias = (flags & 16) != 0 ? bias.host().data : nullptr;
      ops_->Gemm(spec, a.device(), b.device(), c.device());
      const Sizes a_sizes(a), b_sizes(b), c_sizes(c), bias_sizes(bias);
      PlainGemm(plain, a.host(), b.host(), c.host());
      plain.bias = (flags & 16) != 0 ? bias_sizes.view().data : nullptr;
      PlainGemm(plain, a_sizes.view(), b_sizes.view(), c_sizes.view());
      SCOPED_TRACE(testing::Message() << m << "x" << n << "x" << k << " flags " << flags);
      ExpectSums(c, c.host(), k + 2, c_sizes.view());  // The products, the bias, and the old value.
    }
  }
}

TEST_P(DenseOpsTest, ActivationBackwardMasksAndSums) {
  for (const bool relu : {false, true}) {
    TestMatrix y(*ops_, 700, 131, 1), dy(*ops_, 700, 131, 2), bias(*ops_, 1, 131, 3);
    const Sizes sizes(bias);
    ops_->ActivationBackward(y.device(), relu, dy.device(), bias.device().data);
    for (size_t j = 0; j < 131; ++j) {
      float sum = 0, size = 0;
      for (size_t r = 0; r < 700; ++r) {
        float& d = dy.host().Row(r)[j];
        if (relu && !(y.host().Row(r)[j] > 0.0f)) d = 0;
        sum += d;
        size += std::fabs(d);
      }
      bias.host().data[j] = sum;
      sizes.view().data[j] = size;
    }
    EXPECT_EQ(dy.Fetch(), dy.values());
    ExpectSums(bias, bias.host(), 700, sizes.view());
  }
}

// Expects equal sums from other calls. On the host they are equal to the bit, because the order is
// fixed; a library may use another order for a product with an epilogue.
void ExpectSameSums(DenseOps& ops, const TestMatrix& found, const TestMatrix& wanted, size_t terms,
                    ConstMatrix sizes) {
  std::vector<float> values = wanted.Fetch();
  if (ops.on_host()) {
    EXPECT_EQ(found.Fetch(), values);
  } else {
    ExpectSums(found, {values.data(), sizes.rows, sizes.cols, values.size() / sizes.rows}, terms,
               sizes);
  }
}

// Compares with the three calls that it replaces. A ReLU below is masked or left; its product may
// have recorded which values were positive.
TEST_P(DenseOpsTest, BackwardOfDenseIsItsParts) {
  for (const bool relu_below : {false, true}) {
    for (const Write write : {Write::kOver, Write::kAdd}) {
      TestMatrix x(*ops_, 700, 131, 1), weights(*ops_, 131, 90, 2), dy(*ops_, 700, 90, 3);
      TestMatrix weight_gradient(*ops_, 131, 90, 4), bias(*ops_, 1, 90, 5), dx(*ops_, 700, 131, 6);
      TestMatrix weight_wanted(*ops_, 131, 90, 4), bias_wanted(*ops_, 1, 90, 5);
      TestMatrix dx_wanted(*ops_, 700, 131, 6), no_bias(*ops_, 1, 131, 7);
      TestMatrix below(*ops_, 700, 20, 8), weights_below(*ops_, 20, 131, 9);
      ops_->Gemm({.relu = true}, below.device(), weights_below.device(), x.device());
      x.values() = x.Fetch();
      DenseBackward layer;
      layer.x = x.device();
      layer.weights = weights.device();
      layer.dy = dy.device();
      layer.weight_gradient = weight_gradient.device();
      layer.bias_gradient = bias.device().data;
      layer.dx = dx.device();
      layer.write_dx = write;
      layer.relu_below = relu_below;
      const bool masked = ops_->BackwardOfDense(layer);
      EXPECT_TRUE(relu_below || !masked);
      ops_->ActivationBackward({}, false, dy.device(), bias_wanted.device().data);
      ops_->Gemm({.transpose_a = true}, x.device(), dy.device(), weight_wanted.device());
      ops_->Gemm({.transpose_b = true, .write = write}, dy.device(), weights.device(),
                 dx_wanted.device());
      if (masked) {
        ops_->ActivationBackward(x.device(), true, dx_wanted.device(), no_bias.device().data);
      }
      EXPECT_EQ(dy.Fetch(), dy.values());
      const Sizes x_sizes(x), dy_sizes(dy), sums(weight_gradient), dx_sums(dx), bias_sums(bias);
      PlainGemm({.transpose_a = true}, x_sizes.view(), dy_sizes.view(), sums.view());
      PlainGemm({.transpose_b = true, .write = write}, dy_sizes.view(), Sizes(weights).view(),
                dx_sums.view());
      const std::vector<float> ones(700, 1.0f);
      PlainGemm({}, {ones.data(), 1, 700, 700}, dy_sizes.view(), bias_sums.view());
      ExpectSameSums(*ops_, bias, bias_wanted, 700, bias_sums.view());
      ExpectSameSums(*ops_, weight_gradient, weight_wanted, 700, sums.view());
      ExpectSameSums(*ops_, dx, dx_wanted, 91, dx_sums.view());
    }
  }
}

TEST_P(DenseOpsTest, BackwardOfDenseLeavesOutWhatNobodyWants) {
  TestMatrix x(*ops_, 70, 31, 1), dy(*ops_, 70, 9, 2), gradient(*ops_, 31, 9, 3);
  TestMatrix wanted(*ops_, 31, 9, 3);
  DenseBackward layer;
  layer.x = x.device();
  layer.dy = dy.device();
  layer.weight_gradient = gradient.device();
  EXPECT_FALSE(ops_->BackwardOfDense(layer));
  ops_->Gemm({.transpose_a = true}, x.device(), dy.device(), wanted.device());
  EXPECT_EQ(gradient.Fetch(), wanted.Fetch());

  TestMatrix weights(*ops_, 31, 9, 4), dx(*ops_, 70, 31, 5), dx_wanted(*ops_, 70, 31, 5);
  DenseBackward below;
  below.weights = weights.device();
  below.dy = dy.device();
  below.dx = dx.device();
  EXPECT_FALSE(ops_->BackwardOfDense(below));
  ops_->Gemm({.transpose_b = true}, dy.device(), weights.device(), dx_wanted.device());
  EXPECT_EQ(dx.Fetch(), dx_wanted.Fetch());
}

TEST_P(DenseOpsTest, ElementwiseIsExact) {
  TestMatrix x(*ops_, 97, 201, 1), y(*ops_, 97, 201, 2), z(*ops_, 97, 201, 3);
  TestMatrix bias(*ops_, 1, 201, 4);
  ops_->Copy(Write::kOver, x.device(), y.device());
  ops_->Copy(Write::kAdd, x.device(), y.device());
  ops_->RunRows(AddBias{bias.device().data, x.device(), z.device()});
  for (size_t r = 0; r < 97; ++r) {
    for (size_t j = 0; j < 201; ++j) {
      y.host().Row(r)[j] = x.host().Row(r)[j] + x.host().Row(r)[j];
      z.host().Row(r)[j] = x.host().Row(r)[j] + bias.host().data[j];
    }
  }
  EXPECT_EQ(y.Fetch(), y.values());
  EXPECT_EQ(z.Fetch(), z.values());
  std::vector<float> rows(97 * 201, 0.5f);
  ops_->UploadRows(rows, z.device());
  for (size_t r = 0; r < 97; ++r) std::fill_n(z.host().Row(r), 201, 0.5f);
  EXPECT_EQ(z.Fetch(), z.values());
  ops_->FillZero(y.device().data, y.values().size());
  EXPECT_EQ(y.Fetch(), std::vector<float>(y.values().size(), 0.0f));
}

// Computes the definition one key at a time, without shared code.
void PlainPool(const std::vector<TestBags>& features, const PoolSpec& spec, const float* rows,
               Matrix out) {
  for (size_t b = 0; b < out.rows; ++b) {
    std::fill_n(out.Row(b), out.cols, 0.0f);
    for (size_t f = 0; f < features.size(); ++f) {
      const TestBags& bags = features[f];
      const float keys = static_cast<float>(bags.offsets[b + 1] - bags.offsets[b]);
      const size_t column = spec.combine == Combine::kConcat ? f * spec.dim : 0;
      for (uint32_t k = bags.offsets[b]; k < bags.offsets[b + 1]; ++k) {
        const float weight = bags.weights.empty() ? 1.0f : bags.weights[k];
        for (uint32_t d = 0; d < spec.dim; ++d) {
          const float value = weight * rows[bags.row_index[k] * spec.dim + d];
          out.Row(b)[column + d] += spec.pooling == Pooling::kMean ? value / keys : value;
        }
      }
    }
  }
}

// Computes the maximum of each column, the first of equal ones; adds the gradient to that key's
// row.
void PlainMax(const std::vector<TestBags>& features, const PoolSpec& spec, const float* rows,
              Matrix out, ConstMatrix gradient, std::vector<float>* row_gradients) {
  for (size_t f = 0; f < features.size(); ++f) {
    const TestBags& bags = features[f];
    const size_t column = spec.combine == Combine::kConcat ? f * spec.dim : 0;
    for (size_t b = 0; b < out.rows; ++b) {
      for (uint32_t d = 0; d < spec.dim; ++d) {
        float largest = -std::numeric_limits<float>::infinity(), slope = 0.0f;
        size_t row = 0;
        for (uint32_t k = bags.offsets[b]; k < bags.offsets[b + 1]; ++k) {
          const float weight = bags.weights.empty() ? 1.0f : bags.weights[k];
          const float value = weight * rows[bags.row_index[k] * spec.dim + d];
          if (value <= largest) continue;
          largest = value;
          slope = weight;
          row = bags.row_index[k];
        }
        const bool empty = bags.offsets[b] == bags.offsets[b + 1];
        const float before = column == 0 && f > 0 ? out.Row(b)[d] : 0.0f;
        out.Row(b)[column + d] = before + (empty ? 0.0f : largest);
        if (!empty) (*row_gradients)[row * spec.dim + d] += slope * gradient.Row(b)[column + d];
      }
    }
  }
}

double InnerProduct(const std::vector<float>& x, const std::vector<float>& y) {
  double sum = 0;
  for (size_t i = 0; i < x.size(); ++i) sum += double{x[i]} * double{y[i]};
  return sum;
}

// Runs pooling of every kind forward and backward. The backward pass must be the transpose:
// <pool(rows), g> == <rows, pool'(g)>.
TEST_P(DenseOpsTest, PoolAgreesAndBackwardIsItsTranspose) {
  constexpr size_t kBags = 333;
  constexpr uint32_t kRows = 75;
  for (const uint32_t dim : {1u, 5u, 8u, 16u, 32u, 80u}) {
    for (int flags = 0; flags < 16; ++flags) {
      SCOPED_TRACE(testing::Message() << "dim " << dim << " flags " << flags);
      const PoolSpec spec{(flags & 1) != 0 ? Pooling::kMean : Pooling::kSum,
                          (flags & 2) != 0 ? Combine::kSum : Combine::kConcat, dim};
      const uint32_t keys_max = (flags & 8) != 0 ? 4 : 1;
      std::vector<TestBags> features;
      std::vector<Bags> bags;
      for (uint64_t f = 0; f < 3; ++f) {
        features.emplace_back(kBags, keys_max, kRows, (flags & 4) != 0, f);
      }
      for (const TestBags& feature : features) bags.push_back(feature.bags());
      const size_t width = spec.combine == Combine::kConcat ? 3 * dim : dim;
      // A gap of 4 keeps rows in whole vectors if dim does.
      const size_t gap = keys_max > 1 ? 4 : 3;
      TestMatrix rows(*ops_, kRows, dim, 7, 0), out(*ops_, kBags, width, 8, gap);
      TestMatrix gradient(*ops_, kBags, width, 9, gap), row_gradients(*ops_, kRows, dim, 10, 0);
      std::unique_ptr<BagIndex> index;
      ops_->LoadBags(bags, kRows, &index);
      ops_->Pool(*index, spec, rows.whole(), out.device());
      PlainPool(features, spec, rows.host().data, out.host());
      ExpectNear(out.Fetch(), out.values(), 1e-5f);

      ops_->PoolBackward(*index, spec, gradient.device(), Write::kOver, row_gradients.whole());
      const std::vector<float> once = row_gradients.Fetch();
      double forward = 0;
      for (size_t b = 0; b < kBags; ++b) {
        for (size_t j = 0; j < width; ++j) {
          forward += double{out.host().Row(b)[j]} * double{gradient.host().Row(b)[j]};
        }
      }
      std::vector<float> given(once.begin(), once.begin() + kRows * dim);
      std::vector<float> taken(rows.values().begin(), rows.values().begin() + kRows * dim);
      EXPECT_NEAR(forward, InnerProduct(taken, given), 1e-3);
      ops_->PoolBackward(*index, spec, gradient.device(), Write::kAdd, row_gradients.whole());
      const std::vector<float> twice = row_gradients.Fetch();
      for (size_t i = 0; i < given.size(); ++i) {
        ASSERT_NEAR(twice[i], 2 * given[i], 1e-4f * std::max(1.0f, std::fabs(given[i])));
      }
    }
  }
}

// Equal to the bit, because only features are summed, and gradients in order of feature and bag.
TEST_P(DenseOpsTest, MaxPoolingGivesTheGradientToTheFirstLargestKey) {
  constexpr size_t kBags = 333;
  constexpr uint32_t kRows = 75;
  for (const uint32_t dim : {1u, 5u, 16u}) {
    for (int flags = 0; flags < 4; ++flags) {
      SCOPED_TRACE(testing::Message() << "dim " << dim << " flags " << flags);
      const PoolSpec spec{Pooling::kMax, (flags & 1) != 0 ? Combine::kSum : Combine::kConcat, dim};
      std::vector<TestBags> features;
      std::vector<Bags> bags;
      for (uint64_t f = 0; f < 3; ++f) features.emplace_back(kBags, 4, kRows, (flags & 2) != 0, f);
      for (const TestBags& feature : features) bags.push_back(feature.bags());
      const size_t width = spec.combine == Combine::kConcat ? 3 * dim : dim;
      const size_t gap = (flags & 2) != 0 ? 4 : 3;
      TestMatrix rows(*ops_, kRows, dim, 7, 0), out(*ops_, kBags, width, 8, gap);
      TestMatrix gradient(*ops_, kBags, width, 9, gap), row_gradients(*ops_, kRows, dim, 10, 0);
      // Few values, so that many are equal.
      for (float& value : rows.values()) value = std::round(2.0f * value);
      ops_->Upload(rows.values(), rows.device().data);
      std::unique_ptr<BagIndex> index;
      ops_->LoadBags(bags, kRows, &index);
      ops_->Pool(*index, spec, rows.whole(), out.device());
      ops_->PoolBackward(*index, spec, gradient.device(), Write::kOver, row_gradients.whole());
      std::vector<float> wanted(kRows * dim, 0.0f);
      PlainMax(features, spec, rows.host().data, out.host(), gradient.host(), &wanted);
      EXPECT_EQ(out.Fetch(), out.values());
      std::vector<float> given = row_gradients.Fetch();
      given.resize(wanted.size());
      if (ops_->on_host()) {
        EXPECT_EQ(given, wanted);
      } else {
        ExpectNear(given, wanted, 1e-5f);
      }
    }
  }
}

TEST_P(DenseOpsTest, RowGradientsAreNeverMinusZero) {
  TestBags feature(8, 1, 4, false, 1);
  std::vector<Bags> bags = {feature.bags()};
  TestMatrix gradient(*ops_, 8, 1, 1), rows(*ops_, 4, 1, 2, 0);
  std::vector<float> minus_zeros(gradient.values().size(), -0.0f);
  ops_->Upload(minus_zeros, gradient.device().data);
  std::unique_ptr<BagIndex> index;
  ops_->LoadBags(bags, 4, &index);
  ops_->PoolBackward(*index, {Pooling::kSum, Combine::kConcat, 1}, gradient.device(), Write::kOver,
                     rows.whole());
  const std::vector<float> given = rows.Fetch();
  for (size_t i = 0; i < 4; ++i) EXPECT_FALSE(std::signbit(given[i])) << i;
}

TEST_P(DenseOpsTest, DotAgreesWithPlainLoop) {
  for (int flags = 0; flags < 4; ++flags) {
    const bool with_dense = (flags & 1) != 0;
    const Write write = (flags & 2) != 0 ? Write::kAdd : Write::kOver;
    const size_t dim = 9, vectors = with_dense ? 6 : 5;
    TestMatrix v(*ops_, 120, 5 * dim, 1), dense(*ops_, 120, dim, 2);
    TestMatrix dv(*ops_, 120, 5 * dim, 3), ddense(*ops_, 120, dim, 4);
    TestMatrix out(*ops_, 120, DotWidth(vectors), 5), g(*ops_, 120, DotWidth(vectors), 6);
    DotInputs on_device{v.device(), {}, dim}, on_host{v.host(), {}, dim};
    DotGradients to_device{dv.device(), {}, write, write}, to_host{dv.host(), {}, write, write};
    if (with_dense) {
      on_device.dense = dense.device();
      on_host.dense = dense.host();
      to_device.dense = ddense.device();
      to_host.dense = ddense.host();
    }
    ops_->Dot(on_device, out.device());
    Dot(on_host, out.host());
    ExpectNear(out.Fetch(), out.values(), 1e-5f);
    ops_->DotBackward(on_device, g.device(), to_device);
    DotBackward(on_host, g.host(), to_host);
    ExpectNear(dv.Fetch(), dv.values(), 1e-5f);
    ExpectNear(ddense.Fetch(), ddense.values(), 1e-5f);
  }
}

}  // namespace
}  // namespace hdps
