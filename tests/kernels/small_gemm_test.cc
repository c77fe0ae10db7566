// Tests small products against the plain loop, over shapes and both orders of the first factor.
#include "kernels/products/small_gemm.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "common/platform/random.h"
#include "tests/error_bound.h"
#include "tests/kernels/plain_gemm.h"

namespace hdps {
namespace {

std::vector<float> Randoms(size_t count, uint64_t seed) {
  Random random(seed);
  std::vector<float> values(count);
  for (float& x : values) x = static_cast<float>(2.0 * random.Unit() - 1.0);
  return values;
}

std::vector<float> SizesOf(std::vector<float> values) {
  for (float& x : values) x = std::fabs(x);
  return values;
}

class SmallProductTest : public testing::TestWithParam<SmallGemmLoop> {};

TEST_P(SmallProductTest, AgreesWithThePlainLoopAndWritesNothingElse) {
  constexpr size_t kGap = 3;  // Between the rows of every matrix.
  for (const size_t rows : {0, 1, 2, 3, 7, 8, 13, 17, 64}) {
    // One of them makes rows of `a` kSmallProductTile floats apart.
    for (const size_t depth :
         {size_t{0}, size_t{1}, size_t{5}, kSmallProductTile - kGap, size_t{80}}) {
      for (const size_t cols : {16, 32, 48, 80}) {
        for (const bool transposed : {false, true}) {
          for (const Write write : {Write::kOver, Write::kAdd}) {
            const size_t a_stride = (transposed ? rows : depth) + kGap, stride = cols + kGap;
            const std::vector<float> a = Randoms((rows + depth) * a_stride, 1);
            const std::vector<float> b = Randoms((depth + 1) * stride, 2);
            const std::vector<float> start = Randoms(rows * stride + 1, 3);
            std::vector<float> expected = start, actual = start;
            GetParam()({.a = a.data(),
                        .a_row = transposed ? 1 : a_stride,
                        .a_depth = transposed ? a_stride : 1,
                        .b = b.data(),
                        .b_stride = stride,
                        .c = actual.data(),
                        .c_stride = stride,
                        .rows = rows,
                        .depth = depth,
                        .cols = cols,
                        .write = write});
            GemmSpec spec;
            spec.transpose_a = transposed;
            spec.write = write;
            const ConstMatrix a_matrix = transposed ? ConstMatrix{a.data(), depth, rows, a_stride}
                                                    : ConstMatrix{a.data(), rows, depth, a_stride};
            PlainGemm(spec, a_matrix, {b.data(), depth, cols, stride},
                      {expected.data(), rows, cols, stride});
            std::vector<float> sizes = SizesOf(start);
            const std::vector<float> a_sizes = SizesOf(a), b_sizes = SizesOf(b);
            ConstMatrix a_size_matrix = a_matrix;
            a_size_matrix.data = a_sizes.data();
            PlainGemm(spec, a_size_matrix, {b_sizes.data(), depth, cols, stride},
                      {sizes.data(), rows, cols, stride});
            for (size_t i = 0; i < expected.size(); ++i) {
              ASSERT_NEAR(actual[i], expected[i],
                          i % stride < cols ? SumsErrorBound(depth + 1, sizes[i]) : 0.0)
                  << rows << "x" << depth << "x" << cols << " at " << i;
            }
          }
        }
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(PlainAndFast, SmallProductTest,
                         testing::Values(PlainSmallProduct(), SmallGemmOfThisMachine()));

}  // namespace
}  // namespace hdps
