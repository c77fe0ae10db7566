// Runs the suite of dense operations on the CPU, and tests that threads do not change a bit.
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/kernels/dense_ops_suite.h"
#include "tests/kernels/random_matrix.h"

namespace hdps {
namespace {

Executor& InlineForTests() {
  static const std::unique_ptr<Executor> executor = NewInlineExecutor();
  return *executor;
}
Executor& ThreeThreads() {
  static const std::unique_ptr<Executor> executor = NewTbbExecutor(3);
  return *executor;
}

INSTANTIATE_TEST_SUITE_P(
    Cpu, DenseOpsTest,
    testing::Values(
        OpsUnderTest{"inline", [](std::string*) { return NewCpuOps(InlineForTests()); }},
        OpsUnderTest{"threads", [](std::string*) { return NewCpuOps(ThreeThreads()); }}),
    [](const auto& instance) { return std::string(instance.param.name); });

TEST(CpuOps, ThreadsDoNotChangeABit) {
  std::vector<std::vector<float>> results;
  for (const int threads : {1, 2, 4}) {
    const std::unique_ptr<Executor> executor = NewTbbExecutor(threads);
    const std::unique_ptr<DenseOps> ops = NewCpuOps(*executor);
    TestMatrix x(*ops, 777, 429, 1), w(*ops, 429, 300, 2), y(*ops, 777, 300, 3);
    TestMatrix dw(*ops, 429, 300, 4), db(*ops, 1, 300, 5);
    ops->Gemm({}, x.device(), w.device(), y.device());
    ops->ActivationBackward(x.device(), true, y.device(), db.device().data);
    GemmSpec spec;
    spec.transpose_a = true;
    ops->Gemm(spec, x.device(), y.device(), dw.device());
    std::vector<float> all = y.Fetch();
    for (const TestMatrix* part : {&dw, &db}) {
      const std::vector<float> values = part->Fetch();
      all.insert(all.end(), values.begin(), values.end());
    }
    results.push_back(std::move(all));
  }
  EXPECT_EQ(results[0], results[1]);
  EXPECT_EQ(results[0], results[2]);
}

// Row r of a product of 1024 rows, beside any number of rows: all up to 140, and tiles with rest.
TEST(CpuOps, ARowIsTheSameBesideAnyRows) {
  constexpr size_t kRowsMax = 1024;
  for (const Bf16Products bf16 : {Bf16Products::kNone, Bf16Products::kWidened}) {
    const std::unique_ptr<DenseOps> ops = NewCpuOps(InlineForTests(), bf16);
    ops->SetRowsAlike(true);
    for (const size_t depth : {1u, 13u, 80u, 429u, 1030u}) {
      for (const size_t cols : {1u, 2u, 10u, 64u, 300u}) {
        TestMatrix x(*ops, kRowsMax, depth, depth), w(*ops, depth, cols, cols);
        TestMatrix all(*ops, kRowsMax, cols, 3, 0), some(*ops, kRowsMax, cols, 3, 0);
        std::vector<uint16_t> narrow_x(kRowsMax * depth), narrow_w(depth * cols);
        const Bf16Matrix x16{narrow_x.data(), kRowsMax, depth, depth};
        const Bf16Matrix w16{narrow_w.data(), depth, cols, cols};
        if (ops->bf16() != nullptr) ops->bf16()->Narrow(x.device(), x16);
        if (ops->bf16() != nullptr) ops->bf16()->Narrow(w.device(), w16);
        // Adds in the second half of the cases.
        const GemmSpec spec{.write = cols > 10 ? Write::kAdd : Write::kOver};
        const auto multiply = [&](size_t rows, Matrix y) {
          if (ops->bf16() == nullptr) {
            ops->Gemm(spec, x.device().Rows(0, rows), w.device(), y.Rows(0, rows));
          } else {
            ops->bf16()->Gemm(spec, x16.Rows(0, rows), w16, {y.Rows(0, rows), {}});
          }
        };
        std::vector<size_t> counts = {255, 256, 257, 385, 511, 512, 513, 575, 577, 700, 1023};
        for (size_t rows = 1; rows <= 140; ++rows) counts.push_back(rows);
        multiply(kRowsMax, all.device());
        for (const size_t rows : counts) {
          some.values() = TestMatrix(*ops, kRowsMax, cols, 3, 0).values();
          ops->Upload(some.values(), some.device().data);
          multiply(rows, some.device());
          const std::span<float> made = some.whole().first(rows * cols);
          ASSERT_TRUE(std::ranges::equal(made, all.whole().first(rows * cols)))
              << depth << " x " << cols << ", " << rows << " rows";
        }
      }
    }
  }
}

}  // namespace
}  // namespace hdps
