// Tests products of unique rows against the plain layer, over shapes, threads and kinds of bags.
#include "kernels/products/unique_row_gemm.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "common/job/spec/pooling.h"
#include "kernels/dense_ops.h"
#include "tests/error_bound.h"
#include "tests/kernels/cut_rows.h"
#include "tests/kernels/random_matrix.h"

namespace hdps {
namespace {

struct Shape {
  size_t examples;
  uint32_t fields, dim, units;
  size_t before, behind;  // Plain columns in front of and behind the embeddings.
  uint32_t keys_max = 1;
  bool weighted = false;
  Pooling pooling = Pooling::kSum;
  bool shared = false;  // Fields share rows; otherwise each has its own.
  bool relu = true;
  bool interleaved = false;  // Rows of the fields alternate in the table.
};
void PrintTo(const Shape& s, std::ostream* out) {
  *out << s.examples << "x" << s.fields << "x" << s.dim << "->" << s.units << " keys "
       << s.keys_max;
}

constexpr uint32_t kFieldRows = 90;

// A layer on random bags, with its inputs and outputs.
class LayerRun {
 public:
  LayerRun(const Shape& shape, Executor& executor)
      : shape_(shape),
        ops_(NewCpuOps(executor)),
        num_rows_(shape.shared ? kFieldRows : kFieldRows * shape.fields),
        width_(shape.fields * shape.dim),
        inputs_(shape.before + width_ + shape.behind),
        x(*ops_, shape.examples, inputs_, 1),
        rows(*ops_, num_rows_, shape.dim, 2, 0),
        weights(*ops_, inputs_, shape.units, 3),
        bias(*ops_, 1, shape.units, 4),
        y(*ops_, shape.examples, shape.units, 5),
        dy(*ops_, shape.examples, shape.units, 6),
        weight_gradient(*ops_, inputs_, shape.units, 7),
        bias_gradient(*ops_, 1, shape.units, 8),
        row_gradient(*ops_, num_rows_, shape.dim, 9, 0) {
    for (uint32_t f = 0; f < shape.fields; ++f) {
      features_.emplace_back(shape.examples, shape.keys_max, kFieldRows, shape.weighted, 20 + f);
      for (uint32_t& row : features_[f].row_index) {
        row =
            shape.interleaved ? row * shape.fields + f : row + (shape.shared ? 0 : f * kFieldRows);
      }
    }
    for (const TestBags& feature : features_) bags_.push_back(feature.bags());
  }

  // Runs it like the graph's layers.
  void RunPlainly(Write write_rows = Write::kOver) {
    const PoolSpec pool{shape_.pooling, Combine::kConcat, shape_.dim};
    std::unique_ptr<BagIndex> index;
    ops_->LoadBags(bags_, num_rows_, &index);
    ops_->Pool(*index, pool, rows.whole(), x.device().Columns(shape_.before, width_));
    GemmSpec forward;
    forward.bias = bias.device().data;
    forward.relu = shape_.relu;
    ops_->Gemm(forward, x.device(), weights.device(), y.device());
    ops_->ActivationBackward(y.device(), shape_.relu, dy.device(), bias_gradient.device().data);
    ops_->Gemm({.transpose_a = true}, x.device(), dy.device(), weight_gradient.device());
    TestMatrix dx(*ops_, shape_.examples, inputs_, 10);
    ops_->Gemm({.transpose_b = true}, dy.device(), weights.device(), dx.device());
    ops_->PoolBackward(*index, pool, dx.device().Columns(shape_.before, width_), write_rows,
                       row_gradient.whole());
  }

  // `borders`: those of the pieces of rows and gradients.
  void RunOnRows(Write write_rows = Write::kOver, const std::vector<size_t>& borders = {}) {
    CutRows in_pieces(rows.whole(), shape_.dim, borders);
    CutRows gradients(row_gradient.whole(), shape_.dim, borders);
    const std::unique_ptr<UniqueRowGemm> products = ops_->NewRowProducts();
    products->Load(bags_, shape_.pooling, num_rows_);
    RowLayer layer;
    layer.rows = in_pieces.pieces();
    layer.dim = shape_.dim;
    layer.weights = weights.device();
    layer.first_input = shape_.before;
    std::vector<PlainColumns> plain;
    const ConstMatrix all = x.device();
    if (shape_.before > 0) plain.push_back({all.Columns(0, shape_.before), 0});
    const size_t end = shape_.before + width_;
    if (shape_.behind > 0) plain.push_back({all.Columns(end, shape_.behind), end});
    layer.plain = plain;
    layer.bias = bias.device().data;
    layer.relu = shape_.relu;
    products->Forward(layer, y.device());
    products->Backward(layer, y.device(), dy.device(),
                       {weight_gradient.device(), bias_gradient.device().data, gradients.pieces(),
                        write_rows, true});
    std::ranges::copy(gradients.Joined(), row_gradient.whole().begin());
  }
  size_t num_rows() const { return num_rows_; }
  // Returns the length of the longest sum: over the inputs, the units, or the examples.
  size_t most_terms() const {
    return std::max({inputs_, size_t{shape_.units}, shape_.examples}) * shape_.keys_max;
  }

  // Returns all outputs of the layer.
  std::vector<std::vector<float>> Given() const {
    std::vector<std::vector<float>> all;
    for (const TestMatrix* m : {&y, &dy, &weight_gradient, &bias_gradient, &row_gradient}) {
      all.push_back(m->Fetch());
    }
    return all;
  }

 private:
  const Shape shape_;
  const std::unique_ptr<DenseOps> ops_;
  const uint32_t num_rows_;
  const size_t width_, inputs_;
  std::vector<TestBags> features_;
  std::vector<Bags> bags_;

 public:
  TestMatrix x, rows, weights, bias, y, dy, weight_gradient, bias_gradient, row_gradient;
};

class RowProductsTest : public testing::TestWithParam<Shape> {};

// Both add the same terms in other orders. If a sum cancels, its rounding is relative to the
// largest of its matrix.
TEST_P(RowProductsTest, AgreeWithThePlainLayerUpToRounding) {
  const std::unique_ptr<Executor> executor = NewInlineExecutor();
  for (const Write write : {Write::kOver, Write::kAdd}) {
    LayerRun plain(GetParam(), *executor), on_rows(GetParam(), *executor);
    plain.RunPlainly(write);
    on_rows.RunOnRows(write);
    const auto expected = plain.Given(), actual = on_rows.Given();
    for (size_t i = 0; i < expected.size(); ++i) {
      ASSERT_EQ(actual[i].size(), expected[i].size());
      double largest = 0, wrong = 0;
      for (size_t j = 0; j < expected[i].size(); ++j) {
        largest = std::max(largest, std::fabs(double{expected[i][j]}));
        wrong = std::max(wrong, std::fabs(double{actual[i][j]} - double{expected[i][j]}));
      }
      EXPECT_LE(wrong, SumsErrorBound(plain.most_terms(), largest))
          << "y, dy, weights, bias, rows: number " << i;
    }
  }
}

TEST_P(RowProductsTest, ThreadsDoNotChangeABit) {
  std::vector<std::vector<std::vector<float>>> results;
  for (const int threads : {1, 2, 4}) {
    const std::unique_ptr<Executor> executor = NewTbbExecutor(threads);
    LayerRun run(GetParam(), *executor);
    run.RunOnRows();
    results.push_back(run.Given());
  }
  EXPECT_EQ(results[0], results[1]);
  EXPECT_EQ(results[0], results[2]);
}

// Borders between fields, inside fields, one row apart, and pieces without rows.
TEST_P(RowProductsTest, PiecesDoNotChangeABit) {
  const std::unique_ptr<Executor> executor = NewInlineExecutor();
  for (const Write write : {Write::kOver, Write::kAdd}) {
    LayerRun whole(GetParam(), *executor);
    whole.RunOnRows(write);
    const size_t rows = whole.num_rows(), field = kFieldRows;
    for (const std::vector<size_t>& borders :
         std::vector<std::vector<size_t>>{{field / 2},
                                          {field, rows},
                                          {rows - 1},
                                          {0, 1, field - 1},
                                          {3, 4, 10, 10, field / 2 + 1, field - 3, rows - 2}}) {
      LayerRun in_pieces(GetParam(), *executor);
      in_pieces.RunOnRows(write, borders);
      ASSERT_EQ(in_pieces.Given(), whole.Given()) << "first border " << borders[0];
    }
  }
}

TEST_P(RowProductsTest, RowGradientsAreNeverMinusZero) {
  const std::unique_ptr<Executor> executor = NewInlineExecutor();
  LayerRun run(GetParam(), *executor);
  for (float& g : run.dy.values()) g = -0.0f;
  std::copy(run.dy.values().begin(), run.dy.values().end(), run.dy.device().data);
  run.RunOnRows();
  const std::vector<float> given = run.row_gradient.Fetch();
  for (size_t i = 0; i + 1 < given.size(); ++i) ASSERT_FALSE(std::signbit(given[i])) << i;
}

INSTANTIATE_TEST_SUITE_P(
    Shapes, RowProductsTest,
    testing::Values(Shape{700, 5, 16, 64, 0, 13}, Shape{700, 4, 16, 300, 2, 3},
                    Shape{333, 3, 80, 520, 0, 0}, Shape{40, 2, 1, 1, 1, 0},
                    Shape{300, 6, 7, 130, 3, 4, 4, true, Pooling::kMean},
                    Shape{300, 3, 8, 70, 0, 2, 3, false, Pooling::kMean, true},
                    Shape{500, 4, 16, 256, 5, 0, 1, false, Pooling::kSum, true},
                    Shape{500, 4, 33, 1024, 0, 5, 2, true, Pooling::kSum, false, false},
                    Shape{400, 3, 48, 100, 2, 0, 2, true}, Shape{200, 2, 144, 70, 1, 0},
                    Shape{900, 5, 16, 130, 0, 3, 1, false, Pooling::kSum, false, true, true},
                    Shape{80, 3, 32, 70, 0, 3, 2, true, Pooling::kSum, false, true, true},
                    Shape{0, 3, 8, 20, 1, 1}, Shape{1, 3, 8, 20, 1, 1}));

TEST(GatherLoops, GiveTheSameBitsAsThePlainLoops) {
  Random random(3);
  constexpr size_t kRows = 50, kCount = 33, kStride = kGatherTile + 7;
  std::vector<float> rows(kRows * kStride), start(kCount * kGatherTile), factors;
  for (float& x : rows) x = static_cast<float>(random.Normal());
  for (float& x : start) x = static_cast<float>(random.Normal());
  std::vector<uint32_t> begin = {0}, index;
  for (size_t i = 0; i < kCount; ++i) {
    for (uint64_t k = random.Below(5); k > 0; --k) {
      index.push_back(static_cast<uint32_t>(random.Below(kRows)));
      factors.push_back(static_cast<float>(random.Normal()));
    }
    begin.push_back(static_cast<uint32_t>(index.size()));
  }
  index.resize(index.size() + kGatherAhead + kCount);
  const GatherLoops plain = PlainGatherLoops(), fast = GatherLoopsOfThisMachine();
  const std::vector<GatherSource> sources = {{rows.data(), index.data()},
                                             {rows.data() + 7, index.data() + 3}};
  for (const float* const factor : std::vector<const float*>{nullptr, factors.data()}) {
    for (const Write write : {Write::kOver, Write::kAdd}) {
      std::vector<float> expected = start, actual = start;
      plain.add_sources(sources, kStride, kCount, expected.data());
      fast.add_sources(sources, kStride, kCount, actual.data());
      EXPECT_EQ(actual, expected);
      EXPECT_NE(actual, start);
      plain.add_segments({begin, index.data(), factor}, write, rows.data(), kStride,
                         expected.data());
      fast.add_segments({begin, index.data(), factor}, write, rows.data(), kStride, actual.data());
      EXPECT_EQ(actual, expected);
      // Computes the definition for one element.
      float sum = write == Write::kAdd
                      ? start[5] + rows[index[0] * kStride + 5] + rows[index[3] * kStride + 12]
                      : 0.0f;
      for (uint32_t e = begin[0]; e < begin[1]; ++e) {
        sum += (factor == nullptr ? 1.0f : factor[e]) * rows[index[e] * kStride + 5];
      }
      EXPECT_EQ(actual[5], sum);
    }
  }
}

TEST(UniqueRowGemmPays, WhereRowsRepeatOrAreWide) {
  EXPECT_TRUE(UniqueRowGemmPays({39 * 4096, 39 * 1500, 80, 1024}));
  EXPECT_TRUE(UniqueRowGemmPays({26 * 4096, 26 * 1500, 16, 1024}));
  EXPECT_FALSE(UniqueRowGemmPays({26 * 4096, 26 * 4096, 16, 1024})) << "no row repeats";
  EXPECT_TRUE(UniqueRowGemmPays({26 * 4096, 26 * 2800, 16, 1024}));
  EXPECT_FALSE(UniqueRowGemmPays({26 * 4096, 26 * 3200, 16, 1024}));
  EXPECT_FALSE(UniqueRowGemmPays({26 * 4096, 26 * 2900, 24, 1024})) << "no whole vectors";
  EXPECT_FALSE(UniqueRowGemmPays({26 * 4096, 26 * 1500, 1, 1024})) << "adding costs as much";
  EXPECT_FALSE(UniqueRowGemmPays({0, 0, 16, 1024}));
}

}  // namespace
}  // namespace hdps
