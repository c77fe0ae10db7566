// Checks what becomes of readings: samples, sums, quantiles and JSON.
#include "common/telemetry/samples.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "common/telemetry/figures_json.h"
#include "common/telemetry/meters.h"
#include "common/telemetry/process_meters.h"

namespace hdps {
namespace {

constexpr FigureId kStep = FigureNamed("hdps_worker_step_seconds");
constexpr FigureId kExamples = FigureNamed("hdps_worker_examples_total");
constexpr FigureId kLoss = FigureNamed("hdps_worker_loss");
constexpr FigureId kStage = FigureNamed("hdps_worker_stage_seconds_total");
constexpr FigureId kStaleness = FigureNamed("hdps_worker_staleness_clocks");
constexpr FigureId kRows = FigureNamed("hdps_server_rows");

std::vector<Sample> Of(FigureId id, const std::vector<Sample>& samples) {
  std::vector<Sample> found;
  for (const Sample& sample : samples) {
    if (sample.figure == id) found.push_back(sample);
  }
  return found;
}

std::vector<Sample> SamplesOf(const Meters& meters, const std::vector<std::string>& tables = {}) {
  return SamplesOf(meters.layout(), meters.Read(), tables);
}

TEST(SamplesOf, GivesEveryNumberInItsUnit) {
  Meters worker(FigureLayout(FigureRole::kWorker, 0));
  worker.Add(kStage, 1'500'000'000, 5);
  worker.Set(kLoss, 0.25);
  worker.Observe(kStep, 2'000'000'000);
  worker.Observe(kStep, 20'000'000'000);
  const std::vector<Sample> samples = SamplesOf(worker);
  const std::vector<Sample> stages = Of(kStage, samples);
  ASSERT_EQ(stages.size(), kStageLabels.size());
  EXPECT_EQ(stages[5].value, 1.5);
  EXPECT_EQ(stages[5].labels[0], std::pair(std::string("stage"), std::string("compute")));
  EXPECT_EQ(Of(kLoss, samples).at(0).value, 0.25);
  const Sample step = Of(kStep, samples).at(0);
  EXPECT_EQ(step.buckets.size(), kTimeBoundsNs.size() + 1);
  EXPECT_EQ(step.buckets.back(), 1u);
  EXPECT_EQ(step.sum, 22.0);
  EXPECT_EQ(CountOf(step), 2u);

  Meters server(FigureLayout(FigureRole::kServer, 2));
  server.Set(kRows, 7, 3);
  const std::vector<Sample> rows = Of(kRows, SamplesOf(server, {"ids", "words"}));
  ASSERT_EQ(rows.size(), 4u);
  EXPECT_EQ(rows[3].value, 7);
  EXPECT_EQ(rows[3].labels[0].second, "words");
  EXPECT_EQ(rows[3].labels[1].second, "disk");
}

TEST(SamplesOf, KeepsTheHistogramsOfLabelsApart) {
  constexpr FigureId kTime = FigureNamed("hdps_serving_request_seconds");
  Meters model(FigureLayout(FigureRole::kServing, 1));
  for (int i = 0; i < 3; ++i) model.Observe(kTime, 20'000, 1);
  model.Observe(kTime, 20'000'000'000, kProtocolLabels.size() - 1);
  model.Observe(kTime, 1, kProtocolLabels.size());  // There is no such protocol.
  const std::vector<Sample> times = Of(kTime, SamplesOf(model, {"city"}));
  ASSERT_EQ(times.size(), kProtocolLabels.size());
  for (size_t p = 0; p < times.size(); ++p) {
    EXPECT_EQ(times[p].labels[0],
              std::pair(std::string("protocol"), std::string(kProtocolLabels[p])));
    EXPECT_EQ(CountOf(times[p]), p == 1 ? 3u : p + 1 == times.size() ? 1u : 0u) << p;
  }
  EXPECT_EQ(times[1].buckets[1], 3u);
  EXPECT_EQ(times.back().sum, 20.0);
  const std::vector<Sample> keys =
      Of(FigureNamed("hdps_serving_keys_total"), SamplesOf(model, {"city"}));
  ASSERT_EQ(keys.size(), 1u);
  EXPECT_EQ(keys[0].labels[0], std::pair(std::string("feature"), std::string("city")));
}

TEST(SamplesOf, GivesNothingOfAnotherVersion) {
  const FigureLayout layout(FigureRole::kServer, 1);
  Readings readings(layout.size());
  EXPECT_FALSE(SamplesOf(layout, readings, {"ids"}).empty());
  EXPECT_TRUE(SamplesOf(layout, readings, {}).empty());
  EXPECT_TRUE(SamplesOf(layout, readings, {"ids", "words"}).empty());
  readings.push_back(0);
  EXPECT_TRUE(SamplesOf(layout, readings, {"ids"}).empty());
  EXPECT_TRUE(SamplesOf(layout, {}, {"ids"}).empty());
}

TEST(SamplesOf, HasFiguresOfAProcessOnceTheyAreSet) {
  constexpr FigureId kStart = FigureNamed("process_start_time_seconds");
  constexpr FigureId kCpu = FigureNamed("process_cpu_seconds_total");
  Meters meters(FigureLayout(FigureRole::kWorker, 0));
  EXPECT_TRUE(Of(kStart, SamplesOf(meters)).empty());
  SetProcess({.cpu_ns = 2'500'000'000, .start_unix_seconds = 1.7e9}, &meters);
  EXPECT_EQ(Of(kStart, SamplesOf(meters)).at(0).value, 1.7e9);
  EXPECT_EQ(Of(kCpu, SamplesOf(meters)).at(0).value, 2.5);
}

TEST(AddReadings, AddsCountersAndKeepsTheMeanLoss) {
  const FigureLayout layout(FigureRole::kWorker, 0);
  Readings sum;
  const double losses[] = {1, 2, 6};
  const uint64_t examples[] = {100, 300, 400};
  for (int i = 0; i < 3; ++i) {
    Meters meters(layout);
    meters.Add(kExamples, examples[i]);
    meters.Set(kLoss, losses[i]);
    meters.Observe(kStaleness, i);
    SetProcess({.start_unix_seconds = 5}, &meters);
    AddReadings(layout, meters.Read(), &sum);
  }
  const std::vector<Sample> samples = SamplesOf(layout, sum, {});
  EXPECT_EQ(Of(kExamples, samples).at(0).value, 800);
  // (100 * 1 + 300 * 2 + 400 * 6) / 800; all steps are exact in doubles.
  EXPECT_EQ(Of(kLoss, samples).at(0).value, 3.875);
  EXPECT_EQ(CountOf(Of(kStaleness, samples).at(0)), 3u);
  EXPECT_EQ(Of(kStaleness, samples).at(0).sum, 3);
  EXPECT_TRUE(Of(FigureNamed("process_start_time_seconds"), samples).empty());
}

TEST(AddReadings, TakesMembersThatHaveCountedNothing) {
  const FigureLayout layout(FigureRole::kWorker, 0);
  const Readings none(layout.size());
  Readings sum;
  AddReadings(layout, {}, &sum);
  EXPECT_TRUE(sum.empty());
  AddReadings(layout, none, &sum);
  AddReadings(layout, none, &sum);
  AddReadings(layout, {}, &sum);
  EXPECT_EQ(sum, none);

  const FigureLayout servers(FigureRole::kServer, 1);
  Meters server(servers);
  server.Set(kRows, 4, 0);
  Readings rows = server.Read();
  AddReadings(servers, server.Read(), &rows);
  EXPECT_EQ(Of(kRows, SamplesOf(servers, rows, {"ids"})).at(0).value, 8);
}

TEST(QuantileOf, LiesWithinItsBucket) {
  Meters meters(FigureLayout(FigureRole::kWorker, 0));
  const auto quantile = [&](double share) {
    return QuantileOf(Of(kStep, SamplesOf(meters)).at(0), share);
  };
  EXPECT_TRUE(std::isnan(quantile(0.5)));
  for (int i = 0; i < 90; ++i) meters.Observe(kStep, 700'000);     // (0.5 ms, 1 ms]
  for (int i = 0; i < 10; ++i) meters.Observe(kStep, 40'000'000);  // (25 ms, 50 ms]
  EXPECT_DOUBLE_EQ(quantile(0.45), 0.00075);  // The middle of the first bucket that has values.
  EXPECT_DOUBLE_EQ(quantile(0.9), 0.001);
  EXPECT_DOUBLE_EQ(quantile(0.95), 0.0375);
  EXPECT_DOUBLE_EQ(quantile(1), 0.05);
  EXPECT_DOUBLE_EQ(quantile(0), 0.0005);
  meters.Observe(kStep, 60'000'000'000);
  EXPECT_DOUBLE_EQ(quantile(1), 10);  // Beyond the bounds the last one is what is known.
}

TEST(FiguresJson, NestsLabelsAndWritesWholeNumbersAsSuch) {
  Meters server(FigureLayout(FigureRole::kServer, 2));
  server.Set(kRows, 7, 1);
  const std::string json = FiguresJson(Of(kRows, SamplesOf(server, {"a\"b", "c"})));
  EXPECT_EQ(json,
            R"({"hdps_server_rows":{"a\"b":{"memory":0,"disk":7},"c":{"memory":0,"disk":0}}})");

  Meters worker(FigureLayout(FigureRole::kWorker, 0));
  worker.Set(kLoss, std::numeric_limits<double>::quiet_NaN());
  EXPECT_EQ(FiguresJson(Of(kLoss, SamplesOf(worker))), R"({"hdps_worker_loss":null})");
  worker.Set(kLoss, 0.5);
  EXPECT_EQ(FiguresJson(Of(kLoss, SamplesOf(worker))), R"({"hdps_worker_loss":0.5})");
  EXPECT_EQ(FiguresJson(Of(kStep, SamplesOf(worker))),
            R"({"hdps_worker_step_seconds":{"count":0,"sum":0,"p50":null,"p90":null,"p99":null}})");
  EXPECT_EQ(FiguresJson({}), "{}");
}

}  // namespace
}  // namespace hdps
