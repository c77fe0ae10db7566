// The suite of dense operations on a GPU; skipped by name where there is none.
#include <gtest/gtest.h>

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

}  // namespace
}  // namespace hdps
