// Tests crosses of fields on each device against their elements, bit for bit, and bands.
#include <vector>

#include "tests/error_bound.h"
#include "tests/kernels/dense_ops_suite.h"
#include "tests/kernels/plain_gemm.h"
#include "tests/kernels/random_matrix.h"

namespace hdps {
namespace {

// Runs a task on the device, and element by element or row by row on the host.
template <typename Task>
void RunBoth(DenseOps& ops, const Task& device, const Task& host) {
  ops.RunRows(device);
  const Matrix over = host.Over();
  for (size_t r = 0; r < over.rows; ++r) {
    if constexpr (requires { host(r, r); }) {
      for (size_t j = 0; j < over.cols; ++j) host(r, j);
    } else {
      host(r);
    }
  }
}

constexpr size_t kExamples = 9, kVectors = 7, kMaps = 5;
// Numbers of components that fill a vector of each width, and that fill none.
constexpr size_t kDims[] = {1, 5, 16, 40};
constexpr Write kWrites[] = {Write::kOver, Write::kAdd};

// Gaps and elements that a task does not write must stay, so whole arrays are compared.
TEST_P(DenseOpsTest, BilinearPairsAreTheirElements) {
  for (const size_t dim : kDims) {
    for (const bool shared : {false, true}) {
      for (const Write write : kWrites) {
        SCOPED_TRACE(dim * 10 + shared);
        TestMatrix u(*ops_, kExamples, shared ? dim : kVectors * dim, 1);
        TestMatrix x(*ops_, kExamples, kVectors * dim, 2), y(*ops_, kExamples, kVectors * dim, 3);
        RunBoth(*ops_, BilinearRows{dim, u.device(), x.device(), y.device()},
                BilinearRows{dim, u.host(), x.host(), y.host()});
        ASSERT_EQ(y.Fetch(), y.values());
        TestMatrix du(*ops_, kExamples, shared ? dim : kVectors * dim, 4);
        TestMatrix dx(*ops_, kExamples, kVectors * dim, 5);
        RunBoth(
            *ops_,
            BilinearRowsBackward{dim, u.device(), x.device(), y.device(), du.device(), write,
                                 dx.device()},
            BilinearRowsBackward{dim, u.host(), x.host(), y.host(), du.host(), write, dx.host()});
        ASSERT_EQ(du.Fetch(), du.values());
        ASSERT_EQ(dx.Fetch(), dx.values());
        RunBoth(
            *ops_,
            BilinearRowsBackward{dim, u.device(), x.device(), y.device(), du.device(), write, {}},
            BilinearRowsBackward{dim, u.host(), x.host(), y.host(), du.host(), write, {}});
        ASSERT_EQ(du.Fetch(), du.values());
      }
    }
  }
}

// The last columns belong to no example.
TEST_P(DenseOpsTest, VectorsAreSplitAndAddedByTheirElements) {
  for (const size_t dim : kDims) {
    for (const Write write : kWrites) {
      SCOPED_TRACE(dim);
      const size_t cols = kExamples * dim + 6;
      TestMatrix x(*ops_, kExamples, kVectors * dim, 1), split(*ops_, kVectors, cols, 2);
      RunBoth(*ops_, SplitVectors{dim, x.device(), split.device()},
              SplitVectors{dim, x.host(), split.host()});
      ASSERT_EQ(split.Fetch(), split.values());
      EXPECT_EQ(split.host().Row(kVectors - 1)[cols - 1], 0.0f);
      RunBoth(*ops_, SplitVectorsBackward{dim, split.device(), write, x.device()},
              SplitVectorsBackward{dim, split.host(), write, x.host()});
      ASSERT_EQ(x.Fetch(), x.values());
      TestMatrix sums(*ops_, kExamples, kVectors, 3);
      RunBoth(*ops_, SumComponents{dim, split.device(), sums.device()},
              SumComponents{dim, split.host(), sums.host()});
      ASSERT_EQ(sums.Fetch(), sums.values());
      RunBoth(*ops_, SumComponentsBackward{dim, sums.device(), write, split.device()},
              SumComponentsBackward{dim, sums.host(), write, split.host()});
      ASSERT_EQ(split.Fetch(), split.values());
    }
  }
}

TEST_P(DenseOpsTest, ProductsOfMapsAreTheirElements) {
  for (const size_t cols : {1u, 19u, 64u, 100u}) {
    for (const Write write : kWrites) {
      SCOPED_TRACE(cols);
      TestMatrix maps(*ops_, kMaps, cols, 1), first(*ops_, kVectors, cols, 2);
      TestMatrix z(*ops_, kMaps * kVectors, cols, 3), dmaps(*ops_, kMaps, cols, 4);
      TestMatrix dfirst(*ops_, kVectors, cols, 5);
      RunBoth(*ops_, PairProducts{false, maps.device(), first.device(), z.device()},
              PairProducts{false, maps.host(), first.host(), z.host()});
      ASSERT_EQ(z.Fetch(), z.values());
      RunBoth(*ops_, MapsBackward{first.device(), z.device(), dmaps.device()},
              MapsBackward{first.host(), z.host(), dmaps.host()});
      ASSERT_EQ(dmaps.Fetch(), dmaps.values());
      RunBoth(*ops_, FirstBackward{maps.device(), z.device(), write, dfirst.device()},
              FirstBackward{maps.host(), z.host(), write, dfirst.host()});
      ASSERT_EQ(dfirst.Fetch(), dfirst.values());

      TestMatrix pairs(*ops_, kVectors * (kVectors + 1) / 2, cols, 6);
      RunBoth(*ops_, PairProducts{true, first.device(), first.device(), pairs.device()},
              PairProducts{true, first.host(), first.host(), pairs.host()});
      ASSERT_EQ(pairs.Fetch(), pairs.values());
      RunBoth(*ops_, TwiceBackward{first.device(), pairs.device(), write, dfirst.device()},
              TwiceBackward{first.host(), pairs.host(), write, dfirst.host()});
      ASSERT_EQ(dfirst.Fetch(), dfirst.values());
    }
  }
}

// Sums over all products of vectors do not change if the weights of both orders are added first.
TEST_P(DenseOpsTest, FoldedPairsAreAllPairs) {
  constexpr size_t kPairs = kVectors * (kVectors + 1) / 2, kCols = 21;
  TestMatrix whole(*ops_, kVectors * kVectors, kMaps, 1), folded(*ops_, kPairs, kMaps, 2);
  TestMatrix first(*ops_, kVectors, kCols, 3), z(*ops_, kVectors * kVectors, kCols, 4);
  TestMatrix pairs(*ops_, kPairs, kCols, 5), y(*ops_, kMaps, kCols, 6),
      wanted(*ops_, kMaps, kCols, 7);
  ops_->RunRows(FoldPairs{kVectors, whole.device(), folded.device()});
  ops_->RunRows(PairProducts{false, first.device(), first.device(), z.device()});
  ops_->RunRows(PairProducts{true, first.device(), first.device(), pairs.device()});
  ops_->Gemm({.transpose_a = true}, folded.device(), pairs.device(), y.device());
  ops_->Gemm({.transpose_a = true}, whole.device(), z.device(), wanted.device());
  const std::vector<float> found = y.Fetch(), expected = wanted.Fetch();
  for (size_t m = 0; m < kMaps; ++m) {
    for (size_t j = 0; j < kCols; ++j) {
      double size = 0;
      for (size_t h = 0; h < kVectors; ++h) {
        for (size_t f = 0; f < kVectors; ++f) {
          size += std::fabs(double{whole.host().Row(h * kVectors + f)[m]} *
                            double{first.host().Row(h)[j]} * double{first.host().Row(f)[j]});
        }
      }
      // Each term is a rounded product; a folded weight has one rounding more.
      const size_t at = m * wanted.device().stride + j;
      ASSERT_NEAR(found[at], expected[at], SumsErrorBound(kVectors * kVectors + 2, size));
    }
  }
  TestMatrix back(*ops_, kVectors * kVectors, kMaps, 8);
  ops_->RunRows(FoldPairsBackward{kVectors, folded.device(), back.device()});
  const std::vector<float> gradients = back.Fetch(), given = folded.Fetch();
  for (size_t h = 0; h < kVectors; ++h) {
    for (size_t f = 0; f < kVectors; ++f) {
      const size_t place = PairPlace(std::min(h, f), std::max(h, f), kVectors);
      for (size_t m = 0; m < kMaps; ++m) {
        ASSERT_EQ(gradients[(h * kVectors + f) * back.device().stride + m],
                  given[place * folded.device().stride + m]);
      }
    }
  }
}

// Each unit is in one band, bands share no memory, and their products agree with plain sums.
TEST_P(DenseOpsTest, BandsCoverAllUnits) {
  for (const size_t units : {0u, 1u, 7u, 100u}) {
    SCOPED_TRACE(units);
    constexpr size_t kRows = 3, kDepth = 33;  // Rows of a unit.
    for (const size_t cols : {32u, 21u}) {
      for (const bool transposed : {false, true}) {
        const GemmSpec spec{.transpose_b = transposed, .write = Write::kAdd};
        TestMatrix a(*ops_, units * kRows + 1, kDepth, 1), c(*ops_, units * kRows + 1, cols, 2);
        TestMatrix b(*ops_, transposed ? cols : kDepth, transposed ? kDepth : cols, 3);
        std::vector<size_t> found(ops_->Bands(units) + 1, units);
        ops_->RunBands(units, [&](DenseOps& ops, const Band& band) {
          found[band.index] = band.first;
          ops.Gemm(spec, a.device().Rows(band.first * kRows, band.count * kRows), b.device(),
                   c.device().Rows(band.first * kRows, band.count * kRows));
        });
        EXPECT_EQ(found[0], 0u);
        for (size_t i = 0; i + 1 < found.size(); ++i) EXPECT_LE(found[i], found[i + 1]);
        const Sizes sizes(c);
        const std::vector<float> values = c.Fetch();
        PlainGemm(spec, Sizes(a).view(), Sizes(b).view(), sizes.view());
        Matrix wanted = c.host();
        const size_t rows = units * kRows;
        PlainGemm(spec, a.host().Rows(0, rows), b.host(), wanted.Rows(0, rows));
        for (size_t r = 0; r <= rows; ++r) {
          for (size_t j = 0; j < cols; ++j) {
            const double bound =
                r < rows ? SumsErrorBound(kDepth + 1, double{sizes.view().Row(r)[j]}) : 0.0;
            ASSERT_NEAR(values[r * wanted.stride + j], wanted.Row(r)[j], bound);
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace hdps
