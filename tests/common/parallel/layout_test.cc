// Tests layouts, the conversions between them, and the bytes these move.
#include "common/parallel/layout.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/parallel/strategy.h"

namespace hdps {
namespace {

using enum AxisRole;
using testing::ElementsAre;

TEST(LayoutTest, ARankIsItsDigits) {
  const Layout layout({{kRows, 2}, {kSums, 3}, {kColumns, 2}});
  EXPECT_EQ(layout.workers(), 12u);
  EXPECT_EQ(layout.PartOf(7, kRows), 1u);  // 7 = 1 * 6 + 0 * 2 + 1
  EXPECT_EQ(layout.PartOf(7, kSums), 0u);
  EXPECT_EQ(layout.PartOf(7, kColumns), 1u);
  EXPECT_EQ(layout.PartOf(7, kCopies), 0u);
  EXPECT_THAT(layout.Along(7, kSums), ElementsAre(7, 9, 11));
  EXPECT_THAT(layout.Along(7, kRows), ElementsAre(1, 7));
  EXPECT_EQ(layout.Shown(), "rows 2 x sums 3 x columns 2");
  EXPECT_EQ(Layout({{kRows, 1}, {kCopies, 2}, {kCopies, 2}}), Layout::Copies(4));
}

TEST(LayoutTest, CutsDifferByOneAtMost) {
  EXPECT_EQ(CutOf(39, 0, 4), (hdps::Cut{0, 10}));
  EXPECT_EQ(CutOf(39, 2, 4), (hdps::Cut{20, 10}));
  EXPECT_EQ(CutOf(39, 3, 4), (hdps::Cut{30, 9}));
}

TEST(ConversionTest, IsNamedAfterTheCollective) {
  const Layout rows = Layout::OwnRows(4), copies = Layout::Copies(4);
  const Layout columns({{kColumns, 4}}), sums({{kSums, 4}});
  EXPECT_EQ(ConversionOf(rows, rows).kind, ConversionKind::kNone);
  EXPECT_EQ(ConversionOf(copies, rows).kind, ConversionKind::kSlice);
  EXPECT_EQ(ConversionOf(rows, copies).kind, ConversionKind::kAllGather);
  EXPECT_EQ(ConversionOf(rows, columns).kind, ConversionKind::kAllToAll);
  EXPECT_EQ(ConversionOf(sums, rows).kind, ConversionKind::kReduceScatter);
  EXPECT_EQ(ConversionOf(sums, columns).kind, ConversionKind::kReduceScatter);
  EXPECT_EQ(ConversionOf(sums, copies).kind, ConversionKind::kAllReduce);
}

// For P floats, a ring's reduce-scatter and allgather each move (N-1)/N, and an allreduce both.
TEST(ConversionTest, MovesNoMoreThanTheCollectiveNeeds) {
  const Layout rows = Layout::OwnRows(4), copies = Layout::Copies(4);
  const Layout columns({{kColumns, 4}}), sums({{kSums, 4}});
  EXPECT_DOUBLE_EQ(FloatsSent(ConversionOf(sums, rows), 8, 8), 0.75 * 64);
  EXPECT_DOUBLE_EQ(FloatsSent(ConversionOf(rows, copies), 8, 8), 0.75 * 64);
  EXPECT_DOUBLE_EQ(FloatsSent(ConversionOf(sums, copies), 8, 8), 1.5 * 64);
  EXPECT_DOUBLE_EQ(FloatsSent(ConversionOf(rows, columns), 8, 8), 0.75 * 0.25 * 64);
  EXPECT_DOUBLE_EQ(FloatsSent(ConversionOf(copies, rows), 8, 8), 0);
}

TEST(StrategyTest, TheMatricesOfADenseLayer) {
  const LayerLayouts layouts =
      LayoutsOf(LayerCut::kMatrix, {.examples = 2, .inputs = 2, .columns = 2}, 8);
  EXPECT_EQ(layouts.input.Shown(), "rows 2 x columns 2 x copies 2");
  EXPECT_EQ(layouts.product.Shown(), "rows 2 x sums 2 x columns 2");
  EXPECT_EQ(layouts.output.Shown(), "rows 4 x columns 2");
  EXPECT_EQ(layouts.input_gradient.Shown(), "rows 2 x columns 2 x sums 2");
  EXPECT_EQ(layouts.product_gradient.Shown(), "rows 2 x copies 2 x columns 2");
  EXPECT_TRUE(Strategy::DataParallel(4, 3).data_parallel());
}

}  // namespace
}  // namespace hdps
