// Runs the suite of dense operations on a GPU; skips it where there is none.
#include <gtest/gtest.h>

#include <cmath>
#include <utility>

#include "common/job/spec/pooling.h"
#include "common/job/spec/precision.h"
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

}  // namespace
}  // namespace hdps
