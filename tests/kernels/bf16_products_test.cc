// Tests products in bf16 against sums in double of the same rounded numbers.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common/job/spec/pooling.h"
#include "common/platform/random.h"
#include "kernels/dense_ops.h"
#include "kernels/host/float_memory.h"
#include "kernels/host/half_floats.h"
#include "kernels/products/tiled_operand.h"
#include "kernels/vector_width.h"
#include "tests/error_bound.h"
#include "tests/kernels/random_matrix.h"

namespace hdps {
namespace {

constexpr double kBf16Roundoff = 0x1p-8;  // Half a unit in the last place of 1.
// Tolerance for subnormal numbers, which a library may treat in its own way.
constexpr double kTiny = 0x1p-120;

// Random numbers in bf16, with a gap between rows that no operation may touch.
class Numbers {
 public:
  Numbers(size_t rows, size_t cols, uint64_t seed, size_t gap = 3)
      : rows_(rows), cols_(cols), stride_(cols + gap), values_(rows * stride_ + 1) {
    Random random(seed);
    for (uint16_t& value : values_) {
      value = NarrowToBf16(static_cast<float>(2.0 * random.Unit() - 1.0));
    }
  }
  Bf16Matrix view() { return {values_.data(), rows_, cols_, stride_}; }
  float At(size_t r, size_t c) const { return FromBf16(values_[r * stride_ + c]); }
  const std::vector<uint16_t>& values() const { return values_; }

 private:
  size_t rows_, cols_, stride_;
  std::vector<uint16_t> values_;
};

struct Sum {
  double value = 0, magnitude = 0;
};
Sum SumOf(const GemmSpec& spec, const Numbers& a, const Numbers& b, size_t depth, size_t i,
          size_t j) {
  Sum sum;
  for (size_t k = 0; k < depth; ++k) {
    const double x = spec.transpose_a ? a.At(k, i) : a.At(i, k);
    const double y = spec.transpose_b ? b.At(j, k) : b.At(k, j);
    sum.value += x * y;
    sum.magnitude += std::fabs(x * y);
  }
  return sum;
}

struct Case {
  size_t rows, cols, depth;
};

class Bf16ProductsTest : public testing::TestWithParam<Bf16Products> {
 protected:
  void SetUp() override {
    if (GetParam() == Bf16Products::kWidened || GetParam() == Bf16Products::kPlainTiles) return;
    if (GetParam() != Bf16ProductsOfThisMachine()) {
      GTEST_SKIP() << "not what this machine has: " << Bf16ProductsName(GetParam());
    }
  }
  std::unique_ptr<DenseOps> Ops(Executor& executor) const {
    return NewCpuOps(executor, GetParam());
  }
  const std::unique_ptr<Executor> inline_ = NewInlineExecutor();
};

TEST_P(Bf16ProductsTest, AreSumsOfRoundedNumbers) {
  const std::unique_ptr<DenseOps> ops = Ops(*inline_);
  uint64_t seed = 0;
  for (const Case& c : {Case{1, 16, 1}, Case{7, 17, 5}, Case{64, 64, 64}, Case{130, 96, 429},
                        Case{33, 1, 70}, Case{5, 48, 1031}}) {
    for (int choice = 0; choice < 32; ++choice) {
      GemmSpec spec;
      spec.transpose_a = (choice & 1) != 0;
      spec.transpose_b = (choice & 2) != 0;
      const std::vector<float> bias(c.cols, 0.25f);
      if (choice & 4) spec.bias = bias.data();
      spec.relu = (choice & 8) != 0;
      const bool to_bf16 = (choice & 16) != 0;
      if (!to_bf16 && (choice & 4) == 0 && !spec.relu) spec.write = Write::kAdd;
      Numbers a(spec.transpose_a ? c.depth : c.rows, spec.transpose_a ? c.rows : c.depth, ++seed);
      Numbers b(spec.transpose_b ? c.cols : c.depth, spec.transpose_b ? c.depth : c.cols, ++seed);
      Numbers out(c.rows, c.cols, ++seed);
      const Numbers before = out;
      TestMatrix wide(*ops, c.rows, c.cols, seed);
      const std::vector<float> wide_before = wide.values();
      ops->bf16()->Gemm(spec, a.view(), b.view(),
                        {to_bf16 ? Matrix() : wide.device(), to_bf16 ? out.view() : Bf16Matrix()});
      for (size_t i = 0; i < c.rows; ++i) {
        for (size_t j = 0; j < c.cols; ++j) {
          Sum right = SumOf(spec, a, b, c.depth, i, j);
          if (spec.write == Write::kAdd) {
            right.value += wide_before[i * wide.device().stride + j];
            right.magnitude += 1;
          }
          if (spec.bias != nullptr) right.value += 0.25, right.magnitude += 0.25;
          if (spec.relu && right.value < 0) right.value = 0;
          double bound = SumErrorBound(c.depth + 2, right.magnitude) + kTiny;
          if (to_bf16) bound += kBf16Roundoff * (std::fabs(right.value) + bound);
          const double is = to_bf16 ? out.At(i, j) : wide.device().Row(i)[j];
          ASSERT_NEAR(is, right.value, bound) << c.rows << "x" << c.cols << "x" << c.depth
                                              << " choice " << choice << " at " << i << "," << j;
        }
        for (size_t j = c.cols; j < c.cols + 3; ++j) ASSERT_EQ(out.At(i, j), before.At(i, j));
      }
    }
  }
}

TEST_P(Bf16ProductsTest, BackwardGivesWeightsBiasAndInput) {
  const std::unique_ptr<DenseOps> ops = Ops(*inline_);
  constexpr size_t kRows = 150, kInputs = 45, kUnits = 70;
  Numbers x(kRows, kInputs, 1), dy(kRows, kUnits, 2), weights(kInputs, kUnits, 3);
  for (const bool dx_in_bf16 : {false, true}) {
    Numbers dx(kRows, kInputs, 4);
    TestMatrix dw(*ops, kInputs, kUnits, 5), wide_dx(*ops, kRows, kInputs, 6);
    std::vector<float> bias(kUnits, 9.0f);
    Bf16DenseBackward layer{.x = x.view(),
                            .weights = weights.view(),
                            .dy = dy.view(),
                            .weight_gradient = dw.device(),
                            .bias_gradient = bias.data(),
                            .dx = {},
                            .relu_below = dx_in_bf16};
    if (dx_in_bf16) {
      layer.dx.bf16 = dx.view();
    } else {
      layer.dx.fp32 = wide_dx.device();
    }
    ops->bf16()->BackwardOfDense(layer);
    for (size_t j = 0; j < kUnits; ++j) {
      Sum sum;
      for (size_t r = 0; r < kRows; ++r) {
        sum.value += dy.At(r, j);
        sum.magnitude += std::fabs(dy.At(r, j));
      }
      EXPECT_NEAR(bias[j], sum.value, SumErrorBound(kRows, sum.magnitude));
      for (size_t i = 0; i < kInputs; ++i) {
        const Sum product = SumOf({.transpose_a = true}, x, dy, kRows, i, j);
        EXPECT_NEAR(dw.device().Row(i)[j], product.value,
                    SumErrorBound(kRows, product.magnitude) + kTiny);
      }
    }
    for (size_t r = 0; r < kRows; ++r) {
      for (size_t i = 0; i < kInputs; ++i) {
        const Sum product = SumOf({.transpose_b = true}, dy, weights, kUnits, r, i);
        const double bound = SumErrorBound(kUnits, product.magnitude) + kTiny;
        if (!dx_in_bf16) {
          EXPECT_NEAR(wide_dx.device().Row(r)[i], product.value, bound);
        } else if (x.At(r, i) > 0) {
          EXPECT_NEAR(dx.At(r, i), product.value,
                      bound + kBf16Roundoff * (std::fabs(product.value) + bound));
        } else {
          EXPECT_EQ(dx.At(r, i), 0.0f);
        }
      }
    }
  }
}

// The bits are those of one thread, because each thread's work is a function of the shape.
TEST_P(Bf16ProductsTest, DoNotDependOnThreads) {
  const std::unique_ptr<Executor> three = NewTbbExecutor(3);
  std::vector<std::vector<uint16_t>> results;
  for (Executor* const executor : {inline_.get(), three.get()}) {
    const std::unique_ptr<DenseOps> ops = Ops(*executor);
    Numbers a(700, 129, 1), b(129, 520, 2), c(700, 520, 3);
    ops->bf16()->Gemm({.relu = true}, a.view(), b.view(), {{}, c.view()});
    results.push_back(c.values());
  }
  EXPECT_EQ(results[0], results[1]);
}

TEST_P(Bf16ProductsTest, RowsArePooledInFp32AndRoundedOnce) {
  const std::unique_ptr<DenseOps> ops = Ops(*inline_);
  constexpr size_t kBags = 3000, kDim = 9;
  constexpr uint32_t kRows = 200;
  TestMatrix rows(*ops, kRows, kDim, 1, 0);
  for (const Pooling pooling : {Pooling::kSum, Pooling::kMean, Pooling::kMax}) {
    const TestBags one(kBags, 3, kRows, false, 2), other(kBags, 1, kRows, false, 3);
    const std::vector<Bags> features = {one.bags(), other.bags()};
    std::unique_ptr<BagIndex> index;
    ops->LoadBags(features, kRows, &index);
    const PoolSpec spec{pooling, Combine::kConcat, kDim};
    TestMatrix wide(*ops, kBags, 2 * kDim, 4);
    Numbers rounded(kBags, 2 * kDim, 5), pooled(kBags, 2 * kDim, 6);
    const std::span<const float> all = rows.whole();
    ops->Pool(*index, spec, all, wide.device());
    ops->bf16()->Narrow(wide.device(), rounded.view());
    ops->Pool(*index, spec, all, pooled.view());
    for (size_t r = 0; r < kBags; ++r) {
      for (size_t j = 0; j < 2 * kDim; ++j) {
        ASSERT_EQ(pooled.At(r, j), rounded.At(r, j));
        ASSERT_EQ(pooled.At(r, j), FromBf16(NarrowToBf16(wide.device().Row(r)[j])));
      }
    }
  }
}

// Rows get the same bits as from an fp32 gradient with the same numbers.
TEST_P(Bf16ProductsTest, GradientsOfRowsAreAddedUpInFp32) {
  const std::unique_ptr<DenseOps> ops = Ops(*inline_);
  constexpr size_t kBags = 700, kDim = 16;
  constexpr uint32_t kRows = 90;
  for (const Pooling pooling : {Pooling::kSum, Pooling::kMean, Pooling::kMax}) {
    const TestBags one(kBags, 1, kRows, false, 2), other(kBags, 3, kRows, true, 3);
    const std::vector<Bags> features = {one.bags(), other.bags()};
    std::unique_ptr<BagIndex> index;
    ops->LoadBags(features, kRows, &index);
    const PoolSpec spec{pooling, Combine::kConcat, kDim};
    TestMatrix rows(*ops, kRows, kDim, 1, 0), pooled(*ops, kBags, 2 * kDim, 4);
    const std::span<const float> all = rows.whole();
    ops->Pool(*index, spec, all, pooled.device());
    Numbers rounded(kBags, 2 * kDim, 5);
    TestMatrix wide(*ops, kBags, 2 * kDim, 6);
    for (size_t r = 0; r < kBags; ++r) {
      for (size_t j = 0; j < 2 * kDim; ++j) wide.device().Row(r)[j] = rounded.At(r, j);
    }
    TestMatrix is(*ops, kRows, kDim, 7, 0), right(*ops, kRows, kDim, 7, 0);
    for (const Write write : {Write::kOver, Write::kAdd}) {
      ops->PoolBackward(*index, spec, rounded.view(), write, is.whole());
      ops->PoolBackward(*index, spec, wide.device(), write, right.whole());
      EXPECT_EQ(is.Fetch(), right.Fetch());
    }
  }
}

// Bags of one key have a loop of their own; others are between them.
TEST_P(Bf16ProductsTest, RowsAddUpTheirBagsInOrder) {
  constexpr size_t kBags = 1500, kDim = 16;
  constexpr uint32_t kRows = 90;
  TestBags bags(kBags, 1, kRows, false, 2);
  bags.offsets.assign(1, 0);
  bags.row_index.clear();
  Random random(3);
  for (size_t b = 0; b < kBags; ++b) {
    const uint64_t keys = b >= 300 && b < 600 ? random.Below(3) : 1;
    for (uint64_t k = 0; k < keys; ++k) {
      bags.row_index.push_back(static_cast<uint32_t>(random.Below(kRows)));
    }
    bags.offsets.push_back(static_cast<uint32_t>(bags.row_index.size()));
  }
  Numbers gradient(kBags, kDim, 5);
  std::vector<float> right(kRows * kDim);
  for (size_t b = 0; b < kBags; ++b) {
    for (uint32_t k = bags.offsets[b]; k < bags.offsets[b + 1]; ++k) {
      for (size_t d = 0; d < kDim; ++d) {
        right[bags.row_index[k] * kDim + d] += gradient.At(b, d);
      }
    }
  }
  for (const int threads : {1, 2, 3, 4}) {
    const std::unique_ptr<Executor> executor = NewTbbExecutor(threads);
    const std::unique_ptr<DenseOps> ops = Ops(*executor);
    std::unique_ptr<BagIndex> index;
    const std::vector<Bags> features = {bags.bags()};
    ops->LoadBags(features, kRows, &index);
    TestMatrix is(*ops, kRows, kDim, 7, 0);
    ops->PoolBackward(*index, {Pooling::kSum, Combine::kConcat, kDim}, gradient.view(),
                      Write::kOver, is.whole());
    const std::vector<float> rows = is.Fetch();
    EXPECT_TRUE(std::equal(right.begin(), right.end(), rows.begin())) << threads;
  }
}

// The layouts made by AVX-512 are those of the specification, at all edges.
TEST(TiledOperandTest, Avx512LaysOutAsThePlainLoops) {
  if (WidestVectors() != VectorWidth::kAvx512) GTEST_SKIP() << "no AVX-512 within the limit";
  const TileLoops plain = PlainTileLoops(), wide = Avx512TileLoops();
  for (const auto& [rows, cols] :
       {std::pair<size_t, size_t>{1, 1}, {32, 32}, {33, 31}, {70, 100}, {16, 47}, {128, 64}}) {
    Numbers from(rows, cols, rows + cols);
    const auto compare = [&](size_t side, size_t depth, const auto& lay_out) {
      const size_t count = TiledOperand::Numbers(side, depth);
      const FloatMemory a = AllocateFloats(count), b = AllocateFloats(count);
      const TiledOperand left{reinterpret_cast<uint16_t*>(a.get()), TiledOperand::Blocks(depth)};
      const TiledOperand right{reinterpret_cast<uint16_t*>(b.get()), TiledOperand::Blocks(depth)};
      for (size_t block = 0; block < TiledOperand::Blocks(side); ++block) {
        lay_out(plain, block, left);
        lay_out(wide, block, right);
      }
      EXPECT_TRUE(std::equal(left.data, left.data + count, right.data)) << rows << "x" << cols;
    };
    compare(cols, rows, [&](const TileLoops& by, size_t block, TiledOperand to) {
      static std::array<float, kBlockSide> sums[2];
      std::array<float, kBlockSide>& own = sums[by.right == wide.right];
      by.right(from.view(), block, to, own.data());
      if (&own == &sums[1]) {
        EXPECT_EQ(sums[0], sums[1]);
      }
    });
    compare(rows, cols, [&](const TileLoops& by, size_t block, TiledOperand to) {
      by.right_of_transposed(from.view(), block, to);
    });
    compare(cols, rows, [&](const TileLoops& by, size_t block, TiledOperand to) {
      by.left_of_transposed(from.view(), block, to);
    });
  }
}

INSTANTIATE_TEST_SUITE_P(All, Bf16ProductsTest,
                         testing::Values(Bf16Products::kWidened, Bf16Products::kPlainTiles,
                                         Bf16Products::kAvx512, Bf16Products::kAmx),
                         [](const auto& of) {
                           return std::string(of.param == Bf16Products::kWidened      ? "Widened"
                                              : of.param == Bf16Products::kPlainTiles ? "PlainTiles"
                                              : of.param == Bf16Products::kAvx512     ? "Avx512"
                                                                                      : "Amx");
                         });

}  // namespace
}  // namespace hdps
