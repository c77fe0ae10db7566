// Tests the report of a benchmark: its figures from samples.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "benchmarks/bench.h"

namespace hdps {
namespace {

using ::testing::HasSubstr;

TEST(BenchReportTest, MedianAndSpread) {
  EXPECT_EQ(MedianOf({3, 1, 2}), 2);
  EXPECT_EQ(MedianOf({4, 1, 2, 3}), 2.5);
  EXPECT_EQ(SpreadOf({5}), 0);
  EXPECT_EQ(SpreadOf({1, 2, 3, 4, 5}), 2.0 / 3);
  EXPECT_EQ(QuantileOf({1, 2, 3, 4, 5}, 1), 5);
}

TEST(BenchReportTest, RanksAndTheirCorrelation) {
  EXPECT_EQ(RanksOf({30, 10, 20, 10}), (std::vector<double>{4, 1.5, 3, 1.5}));
  EXPECT_DOUBLE_EQ(RankCorrelation({1, 2, 3, 4}, {10, 20, 1000, 3000}), 1);
  EXPECT_DOUBLE_EQ(RankCorrelation({1, 2, 3, 4}, {4, 3, 2, 1}), -1);
  // 1 - 6 * sum of squared distances / (n * (n * n - 1)).
  EXPECT_DOUBLE_EQ(RankCorrelation({1, 2, 3, 4, 5}, {2, 1, 3, 5, 4}), 1 - 6.0 * 4 / 120);
  EXPECT_EQ(RankCorrelation({1, 2, 3}, {7, 7, 7}), 0);
}

// Noise that affects a turn's figure and yardstick alike does not change the ratio.
TEST(BenchReportTest, ARatioIsThatOfEachTurn) {
  BenchResult result;
  result.samples = {50, 10, 5};
  result.yardstick_samples = {100, 20, 10};
  EXPECT_EQ(result.ratio(), 0.5);
  result.samples = {50, 10, 6};
  EXPECT_EQ(result.ratio(), 0.5);
  result.yardstick_samples = {40};  // The yardstick was not measured in turns.
  EXPECT_EQ(result.ratio(), 10.0 / 40);
  result.yardstick_samples = {};
  EXPECT_EQ(result.ratio(), 0);
}

TEST(BenchReportTest, TheTableAndTheJsonSayTheSame) {
  std::vector<double> foreign = {0.5, -1};
  size_t asked = 0;
  BenchReport report([&] { return foreign[asked++]; });
  report.AddBeside("reader", "tsv", "text", "MB/s", {100, 300, 200}, "wc -l", {1000, 3000, 2000});
  report.Add("reader", "tsv", "rows", "rows/s", {1234567});
  const auto json = nlohmann::json::parse(report.Json());
  ASSERT_EQ(json.size(), 2u);
  EXPECT_EQ(json[0]["value"], 200);
  EXPECT_EQ(json[0]["samples"], (std::vector<double>{100, 300, 200}));
  EXPECT_EQ(json[0]["yardstick"], "wc -l");
  EXPECT_EQ(json[0]["ratio"], 0.1);
  EXPECT_EQ(json[1]["foreign_cores"], 0.5) << "too short to tell: that of the one before";
  EXPECT_FALSE(json[1].contains("ratio"));
  const std::string table = report.Table();
  EXPECT_THAT(table, HasSubstr("1,234,567  rows/s"));
  EXPECT_THAT(table, HasSubstr("0.100 of wc -l (2,000)"));
}

TEST(BenchListTest, NamesDiffer) {
  std::set<std::string> names;
  for (const BenchEntry& bench : AllBenches()) {
    EXPECT_TRUE(names.insert(bench.name).second) << bench.name;
    EXPECT_NE(std::string(bench.question), "");
  }
}

TEST(InTurnsTest, TakesTurns) {
  std::string order;
  const auto samples =
      InterleavedSamples(2, {[&] { return order += 'a', 1.0; }, [&] { return order += 'b', 2.0; }});
  EXPECT_EQ(order, "abab");
  EXPECT_EQ(samples, (std::vector<std::vector<double>>{{1, 1}, {2, 2}}));
}

}  // namespace
}  // namespace hdps
