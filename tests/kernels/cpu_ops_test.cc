// Runs the suite of dense operations on the CPU, and tests that threads do not change a bit.
#include <gtest/gtest.h>

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

}  // namespace
}  // namespace hdps
