// Tests which rows workers may keep, how tables may be cut over the servers, and the law of keys
// that says what pays.
#include "common/planning/table_choices.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "common/base/hash.h"
#include "common/job/job_spec.h"
#include "common/job/spec/parallel_spec.h"
#include "tests/common/planning/planning_samples.h"

namespace hdps {
namespace {

using ::testing::Contains;
using ::testing::DoubleNear;
using ::testing::ElementsAre;

using Laws = std::map<std::string, ValueLaw>;

constexpr char kGraph[] = R"({"type": "graph", "tables": [{"name": "t"}, {"name": "u"}], "layers": [
    {"name": "a", "kind": "embedding", "table": "t", "features": ["c"]},
    {"name": "b", "kind": "embedding", "table": "u", "features": ["d"]},
    {"name": "both", "kind": "concat", "inputs": ["a", "b"]},
    {"name": "out", "inputs": ["both"], "units": 1}]})";

std::vector<TableChoices> ChoicesOf(const Job& job, const TableQuestion& question,
                                    bool fits = true) {
  return TableChoicesOf(job, question, [fits](const std::vector<std::string>&) { return fits; });
}

std::vector<uint64_t> KeptIn(const TableChoices& choices) {
  std::vector<uint64_t> kept;
  for (const TableOption& option : choices.options) {
    if (option.cut.empty()) kept.push_back(option.kept);
  }
  return kept;
}

Laws Even(double values, double exponent = 1.05) {
  return {{"c", {values, exponent}}, {"d", {values, exponent}}};
}

TEST(TableChoicesTest, KeptRowsAreThoseThatTheJobFileCanSay) {
  const TableQuestion question = {.laws = Even(25'000), .workers = 4};
  const auto recipe = ChoicesOf(PlacedJobOf(kWideDeep), question);
  ASSERT_EQ(recipe.size(), 1u);
  EXPECT_THAT(KeptIn(recipe[0]), ElementsAre(0, 100, 1000));
  EXPECT_THAT(recipe[0].options[1].settings, ElementsAre("model.vocab_cache_size=100"));
  const auto graph =
      ChoicesOf(PlacedJobOf(kGraph, {"model.tables.1.vocab_cache_size=7"}), question);
  ASSERT_EQ(graph.size(), 2u);
  EXPECT_THAT(KeptIn(graph[0]), ElementsAre(0, 100, 1000));
  EXPECT_THAT(graph[0].options[1].settings, ElementsAre("model.tables.0.vocab_cache_size=100"));
  EXPECT_THAT(KeptIn(graph[1]), ElementsAre(7)) << "a said number stays";
  EXPECT_THAT(KeptIn(ChoicesOf(PlacedJobOf(kWideDeep, {"model.vocab_cache_size=0"}), question)[0]),
              ElementsAre(0));
  EXPECT_THAT(KeptIn(ChoicesOf(PlacedJobOf(kWideDeep), question, false)[0]), ElementsAre(0));
  const TableQuestion half = {.laws = {{"c", {25'000, 1}}}, .workers = 4};
  EXPECT_THAT(KeptIn(ChoicesOf(PlacedJobOf(kWideDeep), half)[0]), ElementsAre(0))
      << "d is not counted";
}

TEST(TableChoicesTest, KeepingPaysWhereFewServersSendTheSameRowsToAll) {
  TableQuestion question = {.laws = Even(5e5, 1.3), .workers = 8};
  const auto least = [&] {
    double seconds = 0;
    const std::vector<TableChoices> choices = ChoicesOf(PlacedJobOf(kWideDeep), question);
    for (const TableOption& option : choices[0].options) {
      seconds = std::min(seconds, option.seconds);
    }
    return seconds;
  };
  const StepRates rates;
  question.rates = OverNetwork(rates, 1e8, 50, 8, 8);
  const double many = least();
  question.rates = OverNetwork(rates, 1e8, 50, 1, 8);
  EXPECT_LT(least(), many);
  EXPECT_LT(least(), 0);
  question.rates.row_float_seconds = question.rates.row_seconds = 0;
  EXPECT_EQ(least(), 0) << "nothing is saved";
  EXPECT_EQ(OverNetwork(rates, 0, 50, 1, 8), rates) << "all on one machine";
}

// Returns the cuts that cost less than hashing, with what they save.
std::map<std::string, double> CutsOf(const Job& job, const TableQuestion& question, size_t choice) {
  std::map<std::string, double> cuts;
  const std::vector<TableChoices> choices = ChoicesOf(job, question);
  for (const TableOption& option : choices[choice].options) {
    if (!option.cut.empty()) cuts[option.cut] = option.seconds;
  }
  return cuts;
}

TEST(TableChoicesTest, FewRowsThatAllAskForAreCutAndManyAreHashed) {
  TableQuestion question = {
      .laws = {{"c", {3, 0}}, {"d", {1e6, 1.05}}}, .servers = 4, .workers = 4};
  const Job wide = PlacedJobOf(kGraph, {"model.tables.0.dim=256", "model.tables.1.dim=4"});
  const auto few = CutsOf(wide, question, 0);
  EXPECT_TRUE(few.contains("columns in 4 parts")) << "3 rows cannot be even over 4 servers";
  EXPECT_LT(few.at("columns in 4 parts"), few.at("columns in 2 parts"));
  EXPECT_TRUE(CutsOf(wide, question, 1).empty()) << "parts of short rows cost more than they even";
  question.servers = 1;
  EXPECT_TRUE(CutsOf(wide, question, 0).empty());
  question.servers = 4;
  EXPECT_TRUE(CutsOf(PlacedJobOf(kGraph, {"model.tables.0.dim=256",
                                          "model.tables.0.slice_mode=batch_slice"}),
                     question, 0)
                  .empty())
      << "a said cut stays";
}

TEST(TableChoicesTest, FeaturesAreCutWhereTheirLoadsAreEven) {
  std::string columns = R"({"name": "y", "type": "label"})";
  Laws laws;
  // All values come to both workers.
  const double values[] = {240, 60, 60, 60, 60};
  for (size_t f = 0; f < std::size(values); ++f) {
    const std::string name = "f" + std::to_string(f);
    columns += R"(, {"name": ")" + name + "\"}";
    laws[name] = {values[f], 0};
  }
  const std::string json = R"({"data": {"train": ["a.csv"], "columns": [)" + columns +
                           R"(]}, "train": {"batch_size": 65536}, "model": {"type": "graph",
      "tables": [{"name": "t", "dim": 2}], "layers": [
      {"name": "a", "kind": "embedding", "table": "t"},
      {"name": "out", "inputs": ["a"], "units": 1}]},
      "parallel": {"parallel_mode": "auto_parallel"}})";
  const Job job = *ParseJob(json, "job.json", {});
  const TableQuestion question = {.laws = laws, .servers = 2, .workers = 2};
  const auto cuts = CutsOf(job, question, 0);
  ASSERT_TRUE(cuts.contains("parts of 1, 4 features"));
  EXPECT_FALSE(cuts.contains("features in equal parts")) << "360 at one server, 120 at the other";
  // Both workers ask for each of the 480 rows. Hashing has some more than half at one server: each
  // row counts 2 there or 0, with a deviation of 1.
  const double more = std::sqrt(2 * std::log(2.0) * 480);
  const double row_seconds = 2 * question.rates.row_float_seconds + question.rates.row_seconds;
  EXPECT_THAT(cuts.at("parts of 1, 4 features"), DoubleNear(-2 * row_seconds * more, 1e-12));
}

TEST(KeyLawTest, TheExponentIsThatOfTheHalf) {
  for (const double exponent : {0.5, 1.05, 1.5}) {
    const auto mass = [exponent](int first) {
      double sum = 0;
      for (int k = 1; k <= first; ++k) sum += std::pow(k, -exponent);
      return sum;
    };
    constexpr int kValues = 5000;
    int half = 1;
    while (mass(half) < mass(kValues) / 2) ++half;
    // The half is a whole number, so the exponent lies between those of its neighbors.
    EXPECT_GE(exponent, LawOfHalf(kValues, half + 1).exponent - 1e-3);
    EXPECT_LE(exponent, LawOfHalf(kValues, std::max(half - 1, 1)).exponent + 1e-3);
  }
  EXPECT_EQ(LawOfHalf(100, 50).exponent, 0);
  EXPECT_EQ(LawOfHalf(1, 1).values, 1);
}

TEST(KeyLawTest, TheMostFrequentOfAllLawsAreThoseThatComeMost) {
  const std::vector<ValueLaw> laws = {{1000, 1.2}, {50, 0.5}, {10, 0}};
  std::vector<std::pair<double, size_t>> all;
  for (size_t f = 0; f < laws.size(); ++f) {
    double mass = 0;
    for (int k = 1; k <= laws[f].values; ++k) mass += std::pow(k, -laws[f].exponent);
    for (int k = 1; k <= laws[f].values; ++k) {
      all.emplace_back(std::pow(k, -laws[f].exponent) / mass, f);
    }
  }
  std::ranges::sort(all, std::greater<>());
  for (const size_t count : {5u, 40u, 400u}) {
    std::vector<double> expected(laws.size());
    for (size_t i = 0; i < count; ++i) ++expected[all[i].second];
    const std::vector<double> found = MostFrequentOf(laws, double(count));
    double sum = 0;
    for (size_t f = 0; f < laws.size(); ++f) {
      EXPECT_NEAR(found[f], expected[f], 1) << count << " of law " << f;
      sum += found[f];
    }
    EXPECT_NEAR(sum, double(count), 1e-6 * double(count) + 1e-3);
  }
}

// Against draws: the squares of the chances are those of how often two batches share a value.
TEST(KeyLawTest, SquaresAreTheValuesThatTwoBatchesShare) {
  const ValueLaw law = {200, 1};
  constexpr int kDraws = 100, kTimes = 400;
  std::vector<double> until(200);
  double mass = 0;
  for (size_t k = 0; k < until.size(); ++k) until[k] = mass += 1 / double(k + 1);
  uint64_t seed = 1;
  const auto batch = [&] {
    std::vector<bool> met(until.size(), false);
    for (int draw = 0; draw < kDraws; ++draw) {
      seed = MixBits(seed + 1);
      const double at = mass * double(seed >> 11) / double(uint64_t{1} << 53);
      met[size_t(std::ranges::upper_bound(until, at) - until.begin())] = true;
    }
    return met;
  };
  double shared = 0;
  for (int time = 0; time < kTimes; ++time) {
    const std::vector<bool> a = batch(), b = batch();
    for (size_t k = 10; k < until.size(); ++k) shared += a[k] && b[k];
  }
  // A count of at most 190 values has a deviation below sqrt(190 / 4); its mean over 400 times is
  // within four of its deviations.
  EXPECT_NEAR(SquaresBehindFirst(10, law, kDraws), shared / kTimes,
              4 * std::sqrt(190.0 / 4 / kTimes));
}

}  // namespace
}  // namespace hdps
