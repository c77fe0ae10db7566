// Tests conversions of matrices between layouts: every element arrives, and no more bytes move than
// the collective needs.
#include "worker/parallel/redistribution.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "common/parallel/strategy.h"
#include "worker/collective/rank_transport.h"

namespace hdps {
namespace {

using enum AxisRole;

constexpr size_t kColumnsAll = 11;

// Returns the summand of an element in a part of the sums, a whole number so that sums are exact in
// any order. Three summands add up to 6 times the element.
float SummandAt(size_t row, size_t column, uint32_t summand) {
  return static_cast<float>((1 + summand) * (1 + row * 100 + column));
}

std::vector<Layout> LayoutsOver(uint32_t workers) {
  std::vector<Layout> found;
  for (uint32_t a = 1; a <= workers; ++a) {
    for (uint32_t b = 1; a * b <= workers; ++b) {
      for (uint32_t c = 1; a * b * c <= workers; ++c) {
        if (workers % (a * b * c) != 0) continue;
        const LayerLayouts layouts = LayoutsOf(LayerCut::kMatrix, {a, b, c}, workers);
        for (const Layout& layout : {layouts.input, layouts.output, layouts.input_gradient,
                                     layouts.product, layouts.product_gradient}) {
          if (std::ranges::find(found, layout) == found.end()) found.push_back(layout);
        }
      }
    }
  }
  return found;
}

// Runs the conversion on every rank, and returns what is wrong with the results.
std::string WrongWith(const std::vector<std::unique_ptr<Collective>>& ranks, const Layout& from,
                      const Layout& to, const ColumnShape& from_columns,
                      const ColumnShape& to_columns, const StepRows& rows, uint64_t* bytes) {
  std::vector<Layout> way = ConversionOf(from, to).way;
  if (way.size() < 2) way = {from, to};
  std::vector<std::string> wrong(ranks.size());
  std::vector<uint64_t> sent(ranks.size());
  OnAllRanks(static_cast<uint32_t>(ranks.size()), [&](uint32_t rank) {
    Redistribution redistribution(way, from_columns, to_columns, rank);
    const MatrixPart had = PartOf(from, rank, rows, from_columns);
    const MatrixPart got = PartOf(way.back(), rank, rows, to_columns);
    std::vector<float> before, after(got.size(), -1.0f);
    for (size_t r = 0; r < had.rows.size; ++r) {
      for (size_t c = 0; c < had.columns.size; ++c) {
        before.push_back(
            SummandAt(had.rows.begin + r, had.columns.begin + c, from.PartOf(rank, kSums)));
      }
    }
    const Status status = redistribution.Run(
        *ranks[rank], rows, {before.data(), had.rows.size, had.columns.size, had.columns.size},
        {after.data(), got.rows.size, got.columns.size, got.columns.size});
    if (!status.ok()) wrong[rank] = status.message();
    sent[rank] = redistribution.bytes_sent();
    const uint32_t sums = from.parts(kSums);
    const auto times = static_cast<float>(sums * (sums + 1) / 2);
    for (size_t i = 0; i < after.size(); ++i) {
      const size_t row = got.rows.begin + i / got.columns.size;
      const size_t column = got.columns.begin + i % got.columns.size;
      if (after[i] != times * SummandAt(row, column, 0)) {
        wrong[rank] = "rank " + std::to_string(rank) + " row " + std::to_string(row) + " column " +
                      std::to_string(column) + ": " + std::to_string(after[i]);
      }
    }
  });
  for (const uint64_t of_rank : sent) *bytes += of_rank;
  for (const std::string& text : wrong) {
    if (!text.empty()) return from.Shown() + " -> " + to.Shown() + ": " + text;
  }
  return "";
}

// Ranks as threads, for any two layouts, with uneven rows and a rank without rows.
TEST(RedistributionTest, EveryElementArrives) {
  size_t conversions = 0;
  for (const uint32_t workers : {1u, 2u, 3u, 4u, 6u, 8u}) {
    const std::vector<std::unique_ptr<Collective>> ranks = NewThreadCollectives(workers);
    std::vector<uint32_t> counts;
    for (uint32_t r = 0; r < workers; ++r) counts.push_back(r == 1 ? 0 : 3 + r % 2);
    const StepRows rows(counts);
    for (const Layout& from : LayoutsOver(workers)) {
      for (const Layout& to : LayoutsOver(workers)) {
        if (to.parts(kSums) > 1) continue;
        uint64_t bytes = 0;
        const ColumnShape columns = {kColumnsAll, 1};
        EXPECT_EQ(WrongWith(ranks, from, to, columns, columns, rows, &bytes), "");
        ++conversions;
      }
    }
  }
  printf("%zu conversions\n", conversions);
}

// Vectors of 4 columns stay whole on one side; single columns are cut on the other.
TEST(RedistributionTest, ColumnsAreCutAtTheirUnits) {
  const std::vector<std::unique_ptr<Collective>> ranks = NewThreadCollectives(4);
  const StepRows rows(std::vector<uint32_t>{2, 3, 1, 2});
  const Layout columns({{kColumns, 4}});
  uint64_t bytes = 0;
  EXPECT_EQ(WrongWith(ranks, columns, columns, {20, 4}, {20, 1}, rows, &bytes), "");
  EXPECT_EQ(WrongWith(ranks, columns, Layout::OwnRows(4), {20, 4}, {20, 1}, rows, &bytes), "");
  EXPECT_EQ((ColumnShape{20, 4}.Part(0, 4)), (hdps::Cut{0, 8}));
  EXPECT_EQ((ColumnShape{20, 4}.Part(1, 4)), (hdps::Cut{8, 4}));
}

// The predicted bytes of a conversion are those that leave the ranks.
TEST(RedistributionTest, MovesWhatIsPredicted) {
  const std::vector<std::unique_ptr<Collective>> ranks = NewThreadCollectives(4);
  const StepRows rows(std::vector<uint32_t>{4, 4, 4, 4});
  const ColumnShape columns = {16, 1};
  for (const Layout& from : LayoutsOver(4)) {
    for (const Layout& to : LayoutsOver(4)) {
      if (to.parts(kSums) > 1 || from == to) continue;
      uint64_t bytes = 0;
      EXPECT_EQ(WrongWith(ranks, from, to, columns, columns, rows, &bytes), "");
      EXPECT_DOUBLE_EQ(static_cast<double>(bytes) / 4,
                       FloatsSent(ConversionOf(from, to), 16, 16) * sizeof(float))
          << from.Shown() << " -> " << to.Shown();
    }
  }
}

}  // namespace
}  // namespace hdps
