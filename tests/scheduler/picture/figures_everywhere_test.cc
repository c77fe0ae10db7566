// Walks the list of figures: each appears with one value wherever figures are shown. It is also
// built with a figure more in the list, which appears in all these places too.
#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>

#include "common/telemetry/prometheus_text.h"
#include "scheduler/picture/panels.h"
#include "scheduler/picture/picture_paths.h"
#include "tests/scheduler/picture/watched_members.h"

namespace hdps {
namespace {

using nlohmann::json;

// Gives every figure of a member values that no other has.
void FillAll(uint64_t seed, Meters* meters) {
  for (uint16_t i = 0; i < kFigures.size(); ++i) {
    const FigureId id{i};
    if (meters->layout().OffsetOf(id) == FigureLayout::kNone) continue;
    for (size_t label = 0; label < meters->layout().LabelsOf(id); ++label) {
      const uint64_t value = seed + 100 * i + label;
      switch (RecordOf(id).kind) {
        case FigureKind::kCounter:
          // Seconds are counted in nanoseconds.
          meters->Add(id, RecordOf(id).unit == FigureUnit::kSeconds ? value * 1'000'000'000 : value,
                      label);
          break;
        case FigureKind::kGauge:
          meters->Set(id, static_cast<double>(value), label);
          break;
        case FigureKind::kHistogram:
          for (uint64_t n = 0; n <= i + seed / 10'000; ++n) meters->Observe(id, 1'000'000);
          break;
      }
    }
  }
}

// The values of /metrics by name and labels, such as hdps_members{role="server",state="alive"}.
std::map<std::string, double> ValuesIn(const std::string& text) {
  std::map<std::string, double> values;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (line.empty() || line[0] == '#') continue;
    const size_t blank = line.rfind(' ');
    values[line.substr(0, blank)] = std::stod(line.substr(blank + 1));
  }
  return values;
}

// Adds the numbers of a figure's JSON under names as ValuesIn() has.
void AddNumbers(const std::string& name, const json& value, const Sample& sample,
                std::map<std::string, double>* sums) {
  const json* at = &value;
  std::string labels;
  for (const auto& [label, text] : sample.labels) {
    at = &at->at(text);
    labels += (labels.empty() ? "" : ",") + label + "=\"" + text + "\"";
  }
  const std::string suffix = labels.empty() ? "" : "{" + labels + "}";
  if (RecordOf(sample.figure).kind == FigureKind::kHistogram) {
    (*sums)[name + "_count" + suffix] += at->at("count").get<double>();
    (*sums)[name + "_sum" + suffix] += at->at("sum").get<double>();
  } else {
    ASSERT_TRUE(at->is_number()) << name << suffix << " is " << *at;
    (*sums)[name + suffix] += at->get<double>();
  }
}

class FiguresEverywhere : public ::testing::Test {
 protected:
  FiguresEverywhere() {
    for (size_t m = 0; m < members_.meters.size(); ++m) {
      FillAll(10'000 * (m + 1), members_.meters[m].get());
    }
    members_.watch->TakeLine(R"({"step": 40, "examples_per_second": 1234.5, "train_loss": 0.625,)"
                             R"( "learning_rate": 0.25})");
    members_.watch->TakeLine(R"({"step": 30, "eval_metrics": {"auc": 0.75, "logloss": 0.5}})");
    members_.Beat(1000);
    picture_ = members_.Ask(1100);
  }
  json Panel(const char* name) { return json::parse(*PanelJson(*picture_, name, 0)); }

  WatchedMembers members_{2, 3};
  std::shared_ptr<const JobPicture> picture_;
};

TEST_F(FiguresEverywhere, JsonAndMetricsTellOneValueOfEachFigure) {
  const json figures = Panel("figures");
  const std::map<std::string, double> told =
      ValuesIn(PrometheusText(SamplesToTell(*picture_, MembersHere::kAll)));
  std::map<std::string, double> sums;
  size_t walked = 0;
  for (uint16_t i = 0; i < kFigures.size(); ++i) {
    const FigureRecord& record = kFigures[i];
    const std::string name(record.name);
    // The figures of a process are in the samples of each member that is alone in its process, and
    // those of serving are another program's (serving_watch_test).
    if (record.role == FigureRole::kProcess || record.role == FigureRole::kServing) continue;
    size_t found = 0;
    for (const Sample& sample : SamplesToTell(*picture_, MembersHere::kAll)) {
      if (sample.figure != FigureId{i}) continue;
      ++found;
      if (record.role == FigureRole::kScheduler) {
        AddNumbers(name, figures["scheduler"]["figures"].at(name), sample, &sums);
        continue;
      }
      for (const json& member : figures["members"]) {
        const bool has =
            member["role"] == (record.role == FigureRole::kWorker ? "worker" : "server");
        EXPECT_EQ(member["figures"].contains(name), has) << name;
        if (has) AddNumbers(name, member["figures"].at(name), sample, &sums);
      }
    }
    EXPECT_GT(found, 0u) << name << " is in no sample";
    ++walked;
  }
  for (const auto& [name, sum] : sums) {
    ASSERT_TRUE(told.contains(name)) << name;
    // Of the loss /metrics tells the mean, weighted by the examples.
    if (name == "hdps_worker_loss") continue;
    EXPECT_DOUBLE_EQ(told.at(name), sum) << name;
  }
  std::printf("[ FIGURE ] %zu figures, %zu values: the same in JSON and /metrics\n", walked,
              sums.size());
#ifdef HDPS_ADDED_FIGURE
  EXPECT_TRUE(sums.contains(HDPS_ADDED_FIGURE));
#endif
}

TEST_F(FiguresEverywhere, ThePageSaysWhatTheFiguresSay) {
  const json page = Panel("page"), own = Panel("figures")["scheduler"]["figures"];
  const json& training = page["training"];
  EXPECT_EQ(training["step"], own["hdps_step"]);
  EXPECT_EQ(training["epoch"], own["hdps_epoch"]);
  EXPECT_EQ(training["examples"], own["hdps_examples_total"]);
  EXPECT_EQ(training["examples_per_second"], own["hdps_examples_per_second"]);
  EXPECT_EQ(training["loss"], own["hdps_training_loss"]);
  EXPECT_EQ(training["learning_rate"], own["hdps_learning_rate"]);
  ASSERT_EQ(training["evaluations"].size(), 2u);
  for (const json& one : training["evaluations"]) {
    EXPECT_EQ(one["value"], own["hdps_evaluation"][""][one["metric"].get<std::string>()]);
  }
  const json figures = Panel("figures");
  for (const json& straggler : page["stragglers"]["workers"]) {
    const size_t m = 2 + static_cast<size_t>(straggler["name"].get<std::string>().back() - '0');
    const json& steps = figures["members"][m]["figures"]["hdps_worker_step_seconds"];
    for (const char* field : {"count", "p50", "p90", "p99"})
      EXPECT_EQ(straggler[field], steps[field]);
  }
  for (const json& table : page["rows"]["tables"]) {
    int64_t rows = 0;
    for (int server = 0; server < 2; ++server) {
      rows += figures["members"][server]["figures"]["hdps_server_rows"]
                     [table["table"].get<std::string>()]["memory"]
                         .get<int64_t>();
    }
    EXPECT_EQ(table["rows"]["memory"], rows);
  }
  // Every panel at its own path is the page's; OUT/figures.json has the page and the figures.
  json whole = json::parse(WholeJson(*picture_));
  for (const std::string_view name : PanelNames()) {
    if (name == "page") continue;
    json panel = Panel(std::string(name).c_str());
    EXPECT_EQ(panel["schema"], 1);
    panel.erase("schema");
    panel.erase("picture");
    EXPECT_EQ(panel, whole.at(name == "where_time_goes" ? "time" : std::string(name))) << name;
  }
  EXPECT_EQ(PanelJson(*picture_, "no_such", 0), std::nullopt);
}

TEST_F(FiguresEverywhere, AnUpdateLeavesOutWhatTheReaderHas) {
  const json first = Panel("page");
  const uint64_t version = first["version"];
  EXPECT_TRUE(first.contains("configuration"));
  json next = json::parse(*PanelJson(*picture_, "page", version));
  EXPECT_FALSE(next.contains("configuration"));
  EXPECT_TRUE(next["training"]["curves"].empty());
  EXPECT_TRUE(next["events"]["events"].empty());
  members_.watch->TakeLine(R"({"step": 50, "train_loss": 0.5})");
  members_.watch->TakeNotice("saved out", false);
  picture_ = members_.Ask(2000);
  next = json::parse(*PanelJson(*picture_, "page", version));
  ASSERT_EQ(next["training"]["curves"].size(), 1u);
  EXPECT_EQ(next["training"]["curves"][0]["points"], json::parse("[[50, 0.5]]"));
  ASSERT_EQ(next["events"]["events"].size(), 1u);
  EXPECT_EQ(next["events"]["events"][0]["text"], "saved out");
  // The job went back: points that the reader has are gone, so it gets the whole curve.
  members_.watch->TakeLine(R"({"step": 45, "train_loss": 0.55})");
  const uint64_t before = picture_->version;
  picture_ = members_.Ask(3000);
  next = json::parse(*PanelJson(*picture_, "page", before));
  ASSERT_EQ(next["training"]["curves"].size(), 1u);
  EXPECT_EQ(next["training"]["curves"][0]["whole"], true);
  EXPECT_EQ(next["training"]["curves"][0]["points"], json::parse("[[40, 0.625], [45, 0.55]]"));
  // The version of another process, older or newer, is that of nobody here.
  EXPECT_TRUE(json::parse(*PanelJson(*picture_, "page", 1ull << 60)).contains("about"));
  EXPECT_EQ(json::parse(*PanelJson(*picture_, "page", 0)), Panel("page"));
}

}  // namespace
}  // namespace hdps
