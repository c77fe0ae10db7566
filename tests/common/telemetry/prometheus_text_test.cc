// Tests the text that Prometheus reads.
#include "common/telemetry/prometheus_text.h"

#include <gtest/gtest.h>

#include <limits>
#include <map>
#include <regex>
#include <sstream>
#include <string>
#include <vector>

namespace hdps {
namespace {

constexpr size_t kSeriesMax = 300, kSeriesOfTableMax = 20, kBytesMax = 64 << 10;

std::vector<std::string> LinesOf(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

size_t SeriesIn(const std::string& text) {
  size_t count = 0;
  for (const std::string& line : LinesOf(text)) count += line.front() != '#';
  return count;
}

// Every figure of a role with its largest numbers; those with free labels have more than are told.
std::vector<Sample> FullSamples(FigureRole role, size_t num_tables) {
  const FigureLayout layout(role, num_tables);
  std::vector<std::string> tables;
  for (size_t t = 0; t < num_tables; ++t) tables.push_back("table " + std::to_string(t));
  std::vector<Sample> samples =
      SamplesOf(layout, Readings(layout.size(), std::numeric_limits<uint32_t>::max()), tables);
  if (role != FigureRole::kScheduler) return samples;
  for (const char* of : {"worker", "server", "scheduler"}) {
    for (const char* state : {"alive", "silent", "missing"}) {
      samples.push_back({.figure = FigureNamed("hdps_members"),
                         .labels = {{"role", of}, {"state", state}},
                         .value = 1e9});
    }
  }
  for (size_t i = 0; i < 10 * kFreeSeriesMax; ++i) {
    samples.push_back({.figure = FigureNamed("hdps_evaluation"),
                       .labels = {{"set", "set " + std::to_string(i)}, {"metric", "auc"}},
                       .value = 0.1234567890123});
  }
  return samples;
}

TEST(PrometheusTextTest, AFigureHasHelpKindAndSamples) {
  const std::string text = PrometheusText({
      {.figure = FigureNamed("hdps_step"), .value = 12},
      {.figure = FigureNamed("hdps_worker_traffic_bytes_total"),
       .labels = {{"direction", "sent"}},
       .value = 3},
      {.figure = FigureNamed("hdps_worker_traffic_bytes_total"),
       .labels = {{"direction", "received"}},
       .value = 5e9},
  });
  const std::vector<std::string> lines = LinesOf(text);
  ASSERT_EQ(lines.size(), 10u);
  EXPECT_EQ(lines[0],
            "# HELP hdps_worker_traffic_bytes_total Bytes of messages between this worker and "
            "servers");
  EXPECT_EQ(lines[1], "# TYPE hdps_worker_traffic_bytes_total counter");
  EXPECT_EQ(lines[2], "hdps_worker_traffic_bytes_total{direction=\"sent\"} 3");
  EXPECT_EQ(lines[3], "hdps_worker_traffic_bytes_total{direction=\"received\"} 5000000000");
  EXPECT_EQ(lines[4], "# HELP hdps_step Steps that every worker has finished");
  EXPECT_EQ(lines[5], "# TYPE hdps_step gauge");
  EXPECT_EQ(lines[6], "hdps_step 12");
  EXPECT_EQ(lines[8], "# TYPE hdps_build_info gauge");
  EXPECT_TRUE(lines[9].starts_with("hdps_build_info{version=\"" HDPS_VERSION "\",compiler=\""));
  EXPECT_TRUE(lines[9].ends_with("\"} 1"));
}

TEST(PrometheusTextTest, BucketsOfAHistogramAddUp) {
  const std::string text = PrometheusText({{.figure = FigureNamed("hdps_worker_staleness_clocks"),
                                            .buckets = {4, 3, 0, 2, 0, 0, 0, 1, 5},
                                            .sum = 777}});
  const std::vector<std::string> lines = LinesOf(text);
  const std::string name = "hdps_worker_staleness_clocks";
  const std::vector<std::string> wanted = {
      "# TYPE " + name + " histogram",
      name + "_count 15",
      name + "_sum 777",
      name + "_bucket{le=\"0\"} 4",
      name + "_bucket{le=\"1\"} 7",
      name + "_bucket{le=\"2\"} 7",
      name + "_bucket{le=\"4\"} 9",
      name + "_bucket{le=\"8\"} 9",
      name + "_bucket{le=\"16\"} 9",
      name + "_bucket{le=\"32\"} 9",
      name + "_bucket{le=\"64\"} 10",
      name + "_bucket{le=\"+Inf\"} 15",
  };
  ASSERT_GT(lines.size(), wanted.size());
  EXPECT_EQ(std::vector(lines.begin() + 1, lines.begin() + 1 + wanted.size()), wanted);
}

TEST(PrometheusTextTest, BoundsOfTimesAreSeconds) {
  std::vector<uint64_t> buckets(kTimeBoundsNs.size() + 1, 1);
  const std::string text = PrometheusText(
      {{.figure = FigureNamed("hdps_worker_step_seconds"), .buckets = buckets, .sum = 0.25}});
  EXPECT_NE(text.find("\nhdps_worker_step_seconds_bucket{le=\"0.025\"} 11\n"), std::string::npos)
      << text;
  EXPECT_NE(text.find("\nhdps_worker_step_seconds_bucket{le=\"10\"} 19\n"), std::string::npos);
  EXPECT_NE(text.find("\nhdps_worker_step_seconds_sum 0.25\n"), std::string::npos);
}

TEST(PrometheusTextTest, LabelsAreEscaped) {
  const std::string text = PrometheusText({{.figure = FigureNamed("hdps_server_keys_total"),
                                            .labels = {{"table", "a\\b\"c\nd"}},
                                            .value = 1}});
  EXPECT_NE(text.find("\nhdps_server_keys_total{table=\"a\\\\b\\\"c\\nd\"} 1\n"), std::string::npos)
      << text;
}

TEST(PrometheusTextTest, ValuesThatAreNotFiniteAreTold) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  EXPECT_NE(PrometheusText({{.figure = FigureNamed("hdps_training_loss"), .value = kInfinity}})
                .find("\nhdps_training_loss +Inf\n"),
            std::string::npos);
  EXPECT_NE(PrometheusText({{.figure = FigureNamed("hdps_training_loss"),
                             .value = std::numeric_limits<double>::quiet_NaN()}})
                .find("\nhdps_training_loss Nan\n"),
            std::string::npos);
}

// The rules of Prometheus' manual on names, and ours.
TEST(PrometheusTextTest, NamesOfTheListFollowTheRules) {
  const std::regex name("(hdps|process)(_[a-z0-9]+)+");
  const std::map<FigureUnit, std::string> units = {{FigureUnit::kSeconds, "_seconds"},
                                                   {FigureUnit::kBytes, "_bytes"},
                                                   {FigureUnit::kClocks, "_clocks"}};
  std::map<std::string_view, int> seen;
  for (const FigureRecord& record : kFigures) {
    const std::string_view told = record.name;
    EXPECT_TRUE(std::regex_match(told.begin(), told.end(), name)) << told;
    EXPECT_EQ(told.starts_with("process_"), record.role == FigureRole::kProcess) << told;
    EXPECT_EQ(told.ends_with("_total"), record.kind == FigureKind::kCounter) << told;
    for (const char* reserved : {"_bucket", "_count", "_sum", "_info"}) {
      EXPECT_FALSE(told.ends_with(reserved)) << told;
    }
    std::string_view base = told;
    if (base.ends_with("_total")) base.remove_suffix(6);
    for (const auto& [unit, word] : units) {
      EXPECT_EQ(base.ends_with(word), record.unit == unit) << told;
    }
    EXPECT_FALSE(record.help.empty() || record.help.ends_with('.')) << told;
    EXPECT_EQ(++seen[told], 1) << told << " twice";
  }
}

TEST(PrometheusTextTest, SeriesAreFew) {
  using enum FigureRole;
  for (const size_t tables : {0, 1, 26, 100}) {
    std::vector<Sample> all;  // As of a process in which the whole job is.
    for (const FigureRole role : {kScheduler, kServer, kWorker}) {
      const std::vector<Sample> samples = FullSamples(role, tables);
      const std::string text = PrometheusText(samples);
      EXPECT_LE(SeriesIn(text), kSeriesMax + kSeriesOfTableMax * tables);
      for (const Sample& sample : samples) {
        const bool of_process = RecordOf(sample.figure).role == kProcess;
        if (!of_process || role == kScheduler) all.push_back(sample);
      }
    }
    const std::string text = PrometheusText(all);
    EXPECT_LE(SeriesIn(text), kSeriesMax + kSeriesOfTableMax * tables);
    if (tables == 0) {
      EXPECT_LE(text.size(), kBytesMax);
    }
    std::printf("%zu tables: %zu series, %zu bytes\n", tables, SeriesIn(text), text.size());
  }
}

TEST(PrometheusTextTest, OfFiguresWithFreeLabelsSomeAreTold) {
  const std::string text = PrometheusText(FullSamples(FigureRole::kScheduler, 0));
  size_t count = 0;
  for (const std::string& line : LinesOf(text)) count += line.starts_with("hdps_evaluation{");
  EXPECT_EQ(count, kFreeSeriesMax);
}

}  // namespace
}  // namespace hdps
