// Runs the suite of dense operations on a GPU; skips it where there is none.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "common/job/spec/pooling.h"
#include "common/job/spec/precision.h"
#include "common/platform/executor.h"
#include "kernels/bf16_ops.h"
#include "kernels/host/half_floats.h"
#include "tests/kernels/dense_ops_suite.h"
#include "tests/kernels/random_matrix.h"

namespace hdps {
namespace {

std::unique_ptr<DenseOps> MakeCuda(std::string* why) {
  Result<std::unique_ptr<DenseOps>> ops = NewCudaOps();
  if (ops.ok()) return *std::move(ops);
  *why = "no GPU: " + ops.status().message();
  return nullptr;
}

INSTANTIATE_TEST_SUITE_P(Cuda, DenseOpsTest, testing::Values(OpsUnderTest{"gpu", MakeCuda}),
                         [](const auto& instance) { return std::string(instance.param.name); });

TEST(CudaOps, TwoRunsAreBitIdentical) {
  std::string why;
  const std::unique_ptr<DenseOps> ops = MakeCuda(&why);
  if (ops == nullptr) GTEST_SKIP() << why;
  const TestBags feature(4096, 3, 500, false, 1);
  const std::vector<Bags> bags = {feature.bags()};
  std::vector<std::vector<float>> results;
  for (int run = 0; run < 2; ++run) {
    TestMatrix x(*ops, 4096, 429, 1), w(*ops, 429, 256, 2), y(*ops, 4096, 256, 3);
    TestMatrix dw(*ops, 429, 256, 4), db(*ops, 1, 256, 5), rows(*ops, 500, 256, 6, 0);
    ops->Gemm({}, x.device(), w.device(), y.device());
    ops->ActivationBackward(x.device(), true, y.device(), db.device().data);
    GemmSpec spec;
    spec.transpose_a = true;
    ops->Gemm(spec, x.device(), y.device(), dw.device());
    std::unique_ptr<BagIndex> index;
    ops->LoadBags(bags, 500, &index);
    ops->PoolBackward(*index, {Pooling::kSum, Combine::kConcat, 256}, y.device(), Write::kOver,
                      rows.whole());
    std::vector<float> all = y.Fetch();
    for (const TestMatrix* part : {&dw, &db, &rows}) {
      const std::vector<float> values = part->Fetch();
      all.insert(all.end(), values.begin(), values.end());
    }
    results.push_back(std::move(all));
  }
  EXPECT_EQ(results[0], results[1]);
}

// Each factor is off by at most half a unit of its last bit, and their product by twice that; sums
// of 64 add the error of fp32. Some values must be rounded, or nothing was tested.
TEST(CudaOps, FactorsOfProductsAreRoundedAsThePrecisionSays) {
  std::string why;
  const std::unique_ptr<DenseOps> exact = MakeCuda(&why);
  if (exact == nullptr) GTEST_SKIP() << why;
  constexpr size_t kRows = 50, kDepth = 64, kCols = 33;
  const auto product = [&](DenseOps& ops, bool sizes) {
    TestMatrix a(ops, kRows, kDepth, 1), b(ops, kDepth, kCols, 2), c(ops, kRows, kCols, 3);
    if (sizes) {
      for (TestMatrix* const m : {&a, &b}) {
        for (float& value : m->values()) value = std::fabs(value);
        ops.Upload(m->values(), m->device().data);
      }
    }
    ops.Gemm({}, a.device(), b.device(), c.device());
    return c.Fetch();
  };
  const std::vector<float> wanted = product(*exact, false), sizes = product(*exact, true);
  for (const auto& [precision, bits] : {std::pair(Precision::kTf32, 10), {Precision::kBf16, 7}}) {
    const auto ops = NewCudaOps({.executor = nullptr, .worker = 0, .precision = precision});
    ASSERT_TRUE(ops.ok()) << ops.status().message();
    const std::vector<float> found = product(**ops, false);
    const double unit = std::ldexp(1.0, -bits - 1);
    double largest = 0;
    for (size_t r = 0; r < kRows; ++r) {
      for (size_t c = 0; c < kCols; ++c) {
        const size_t i = r * (kCols + 3) + c;
        const double error = std::fabs(double{found[i]} - wanted[i]) / sizes[i];
        ASSERT_LE(error, 2 * unit + unit * unit + 2 * kDepth * 0x1p-24) << r << " " << c;
        largest = std::max(largest, error);
      }
    }
    EXPECT_GT(largest, unit / 64) << "nothing was rounded";
    EXPECT_EQ(product(**ops, false), found) << "two runs";
  }
}

// A matrix in bf16 on a device, rounded there.
class Rounded {
 public:
  Rounded(DenseOps& ops, const TestMatrix& from)
      : ops_(ops),
        array_(&ops),
        view_(array_.ReserveBf16Rows(from.device().rows, from.device().cols)) {
    ops.bf16()->Narrow(from.device(), view_);
  }
  Bf16Matrix view() const { return view_; }
  // [rows, cols]
  std::vector<float> Fetch() const {
    std::vector<float> words((view_.rows * view_.stride + 1) / 2);
    ops_.Download(array_.data(), words);
    const auto* const bits = reinterpret_cast<const uint16_t*>(words.data());
    std::vector<float> values;
    for (size_t r = 0; r < view_.rows; ++r) {
      const uint16_t* const row = bits + r * view_.stride;
      for (size_t j = 0; j < view_.cols; ++j) values.push_back(FromBf16(row[j]));
    }
    return values;
  }

 private:
  DenseOps& ops_;
  DeviceArray array_;
  Bf16Matrix view_;
};

std::vector<float> ValuesOf(const TestMatrix& matrix) {
  const std::vector<float> all = matrix.Fetch();
  const Matrix view = matrix.device();
  std::vector<float> values;
  for (size_t r = 0; r < view.rows; ++r) {
    values.insert(values.end(), &all[r * view.stride], &all[r * view.stride] + view.cols);
  }
  return values;
}

// All that a dense layer computes in bf16, and what rows make of a gradient in bf16.
std::vector<std::vector<float>> LayerInBf16(DenseOps& ops, size_t units) {
  constexpr size_t kExamples = 70, kInputs = 40;
  TestMatrix x(ops, kExamples, kInputs, 1), w(ops, kInputs, units, 2), bias(ops, 1, units, 3);
  TestMatrix y(ops, kExamples, units, 4), dy(ops, kExamples, units, 5), dw(ops, kInputs, units, 6);
  TestMatrix db(ops, 1, units, 7), dx(ops, kExamples, kInputs, 8), rows(ops, 60, units, 9, 0);
  const Rounded x16(ops, x), w16(ops, w), dy16(ops, dy), y16(ops, y), dx16(ops, x);
  const GemmSpec spec{.bias = bias.device().data, .relu = true};
  ops.bf16()->Gemm(spec, x16.view(), w16.view(), {y.device(), {}});
  ops.bf16()->Gemm(spec, x16.view(), w16.view(), {{}, y16.view()});
  Bf16DenseBackward layer;
  layer.x = x16.view();
  layer.weights = w16.view();
  layer.dy = dy16.view();
  layer.weight_gradient = dw.device();
  layer.bias_gradient = db.device().data;
  layer.dx.fp32 = dx.device();
  layer.write_dx = Write::kAdd;
  ops.bf16()->BackwardOfDense(layer);
  layer.weight_gradient = {};
  layer.bias_gradient = nullptr;
  layer.dx = {{}, dx16.view()};
  layer.write_dx = Write::kOver;
  layer.relu_below = true;
  ops.bf16()->BackwardOfDense(layer);

  const TestBags feature(kExamples, 1, 60, false, 1);
  const std::vector<Bags> bags = {feature.bags()};
  const PoolSpec pool{Pooling::kSum, Combine::kConcat, static_cast<uint32_t>(units)};
  std::unique_ptr<BagIndex> index;
  ops.LoadBags(bags, 60, &index);
  const Rounded pooled(ops, y);
  ops.Pool(*index, pool, std::span<const float>(rows.whole()), pooled.view());
  const std::vector<float> of_rows = pooled.Fetch();
  ops.PoolBackward(*index, pool, dy16.view(), Write::kOver, rows.whole());
  return {x16.Fetch(),  ValuesOf(y),  y16.Fetch(), ValuesOf(dw),  ValuesOf(db),
          ValuesOf(dx), dx16.Fetch(), of_rows,     ValuesOf(rows)};
}

// Beside the CPU's products of the same rounded numbers. Sums differ in their order; what is
// rounded to bf16 behind them, and a bias that is rounded first, by a unit of bf16 each.
TEST(CudaOps, DenseLayersInBf16AreThoseOfTheHost) {
  const auto made = NewCudaOps({.executor = nullptr, .worker = 0, .precision = Precision::kBf16});
  if (!made.ok()) GTEST_SKIP() << made.status().message();
  const std::unique_ptr<Executor> executor = NewInlineExecutor();
  const std::unique_ptr<DenseOps> host = NewCpuOps(*executor, Bf16Products::kWidened);
  constexpr size_t kExact[] = {0, 7};  // Rounded alone.
  for (const size_t units : {33u, 64u}) {
    const auto found = LayerInBf16(**made, units), wanted = LayerInBf16(*host, units);
    for (size_t part = 0; part < wanted.size(); ++part) {
      SCOPED_TRACE(testing::Message() << units << " units, part " << part);
      ASSERT_EQ(found[part].size(), wanted[part].size());
      const bool in_bf16 = part == 2 || part == 6;
      const double unit = in_bf16 ? 0x1p-6 : 1e-5;
      for (size_t i = 0; i < wanted[part].size(); ++i) {
        const double size = std::max(1.0, std::fabs(double{wanted[part][i]}));
        const double bound = std::ranges::count(kExact, part) > 0 ? 0 : unit * size;
        ASSERT_NEAR(found[part][i], wanted[part][i], bound) << i;
      }
    }
    EXPECT_EQ(LayerInBf16(**made, units), found) << "two runs";
  }
}

}  // namespace
}  // namespace hdps
