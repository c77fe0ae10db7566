// Tests epilogues of cuBLASLt products, their replacement where it has no such kernel, and how
// often an algorithm is chosen.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <vector>

#include "kernels/dense_ops.h"
#include "tests/cuda_on_cpu/stand_in.h"
#include "tests/kernels/random_matrix.h"

namespace hdps {
namespace {

using cuda_on_cpu::Counters;
using cuda_on_cpu::CountersNow;

std::unique_ptr<DenseOps> Ops() {
  Result<std::unique_ptr<DenseOps>> ops = NewCudaOps();
  CHECK(ops.ok()) << ops.status().message();
  return *std::move(ops);
}

// Computes two layers of ReLUs, forward and backward; returns all results of the second.
std::vector<float> TwoLayers(DenseOps& ops, size_t examples, ReluMask* mask) {
  TestMatrix x(ops, examples, 20, 1), w(ops, 20, 33, 2), b(ops, 1, 33, 3), h(ops, examples, 33, 4);
  TestMatrix w2(ops, 33, 12, 5), b2(ops, 1, 12, 6), y(ops, examples, 12, 7);
  TestMatrix dy(ops, examples, 12, 8), dw2(ops, 33, 12, 9), db2(ops, 1, 12, 10);
  TestMatrix dh(ops, examples, 33, 11);
  ops.Gemm({.bias = b.device().data, .relu = true, .relu_mask = mask}, x.device(), w.device(),
           h.device());
  ops.Gemm({.bias = b2.device().data, .relu = true}, h.device(), w2.device(), y.device());
  DenseBackward layer;
  layer.x = h.device();
  layer.weights = w2.device();
  layer.dy = dy.device();
  layer.weight_gradient = dw2.device();
  layer.bias_gradient = db2.device().data;
  layer.dx = dh.device();
  layer.relu_below = true;
  layer.mask_below = mask;
  EXPECT_TRUE(ops.BackwardOfDense(layer));
  std::vector<float> all = h.Fetch();
  for (const TestMatrix* m : {&y, &dw2, &db2, &dh}) {
    const std::vector<float> values = m->Fetch();
    all.insert(all.end(), values.begin(), values.end());
  }
  return all;
}

// 50 examples are one block of the column sums, so the sums have the same order with and without
// epilogues.
TEST(CudaProducts, WhereTheLibraryHasNoEpiloguesKernelsTakeTheirPlace) {
  std::vector<std::vector<float>> found;
  for (const bool refused : {false, true}) {
    cuda_on_cpu::RefuseEpilogues(refused);
    const std::unique_ptr<DenseOps> ops = Ops();
    ReluMask mask(ops.get());
    const Counters before = CountersNow();
    found.push_back(TwoLayers(*ops, 50, &mask));
    const Counters after = CountersNow();
    EXPECT_EQ(mask.written, !refused);
    EXPECT_EQ(after.products - before.products, 4u);
    EXPECT_EQ(after.epilogues - before.epilogues, refused ? 0u : 4u);
    std::printf("two layers forward and backward%s: %lu products, %lu with an epilogue\n",
                refused ? " without epilogues" : "", after.products - before.products,
                after.epilogues - before.epilogues);
  }
  cuda_on_cpu::RefuseEpilogues(false);
  EXPECT_EQ(found[0], found[1]);
  EXPECT_TRUE(std::ranges::find(found[0], 0.0f) != found[0].end()) << "nothing was masked";
}

TEST(CudaProducts, AnAlgorithmIsChosenOncePerShape) {
  const std::unique_ptr<DenseOps> ops = Ops();
  ReluMask mask(ops.get());
  const uint64_t before = CountersNow().heuristics;
  const std::vector<float> first = TwoLayers(*ops, 50, &mask);
  EXPECT_EQ(CountersNow().heuristics - before, 4u);
  EXPECT_EQ(TwoLayers(*ops, 50, &mask), first);
  EXPECT_EQ(CountersNow().heuristics - before, 4u);
  TwoLayers(*ops, 49, &mask);
  EXPECT_EQ(CountersNow().heuristics - before, 8u);
}

}  // namespace
}  // namespace hdps
