// Tests the page of a run: its content, its notes on damaged files, and that no text becomes
// markup.
#include "tools/report/report_page.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "scheduler/page/page_assets.h"
#include "scheduler/page/page_tables.h"
#include "tests/worker/data/data_fixture.h"
#include "tools/report/charts.h"

namespace hdps {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr const char* kMetrics =
    "{\"time\":1,\"step\":10,\"epoch\":1,\"train_loss\":0.7,\"examples_per_second\":100}\n"
    "{\"time\":2,\"step\":20,\"epoch\":1,\"train_loss\":0.6,\"examples_per_second\":200}\n"
    "{\"time\":2,\"step\":20,\"epoch\":1,\"eval_examples\":9,\"eval_auc\":0.71,\"eval_logloss\":"
    "null}\n";
constexpr const char* kSummary =
    "{\"job\":\"clicks\",\"steps\":20,\"eval_auc\":0.71,\"cache\":null,\"eval_calibration\":["
    "{\"predicted\":0.1,\"observed\":0.12,\"weight\":50},"
    "{\"predicted\":null,\"observed\":null,\"weight\":0},"
    "{\"predicted\":0.6,\"observed\":0.5,\"weight\":10}]}";
constexpr const char* kJob =
    "{\"name\":\"clicks\",\"train\":{\"batch_size\":64,\"epochs\":2},\"model\":{\"hidden\":[8,4],"
    "\"tables\":[{\"name\":\"deep\",\"dim\":8}]}}";
constexpr const char* kLog =
    "2026-01-01T00:00:00Z I hdps data: 1 file of format csv\n"
    "2026-01-01T00:00:00Z W hdps something is odd\n"
    "2026-01-01T00:00:01Z I hdps epoch 1 until step 10: 10 steps, 100 examples/s; ms a step: 4.00 "
    "in all, wait for reader 1.00, pull 0.50 (0.30 more behind other work), compute 1.00, reduce "
    "dense 0.00, kept rows 0.00, push 0.50 (reader: read 1.17, dedup 0.06)\n"
    "2026-01-01T00:00:02Z I hdps epoch 2 until step 40: 30 steps, 100 examples/s; ms a step: 2.00 "
    "in all, wait for reader 0.00, pull 0.50 (0.30 more behind other work), compute 1.00, reduce "
    "dense 0.00 (0.00 more behind other work), kept rows 0.00, push 0.50 (reader: read 1.17, dedup "
    "0.06)\n";

std::unique_ptr<FileSystem> Folder(const std::string& metrics,
                                   const std::string& summary = kSummary,
                                   const std::string& job = kJob, const std::string& log = kLog) {
  auto files = NewMemoryFileSystem();
  EXPECT_TRUE(files->MakeDirectories("out/log").ok());
  WriteText(*files, "out/metrics.jsonl", metrics);
  if (!summary.empty()) WriteText(*files, "out/summary.json", summary);
  if (!job.empty()) WriteText(*files, "out/job_as_run.json", job);
  if (!log.empty()) WriteText(*files, "out/log/train.log", log);
  return files;
}

RunFiles Read(FileSystem& files) {
  auto run = ReadRunFiles(files, "out");
  EXPECT_TRUE(run.ok()) << run.status().message();
  return run.ok() ? *run : RunFiles();
}

std::vector<double> StepsOf(const Curve& curve) {
  std::vector<double> steps;
  for (const Curve::Point& point : curve.points) steps.push_back(point.step);
  return steps;
}

TEST(RunFilesTest, WhatARunHasLeftIsRead) {
  const RunFiles run = Read(*Folder(kMetrics));
  EXPECT_EQ(run.job, "clicks");
  EXPECT_TRUE(run.finished);
  EXPECT_THAT(run.notes, ElementsAre());
  ASSERT_EQ(run.training.size(), 2u);
  EXPECT_EQ(run.training[0].name, "train_loss");
  EXPECT_THAT(StepsOf(run.training[0]), ElementsAre(10, 20));
  ASSERT_EQ(run.evaluations.size(), 1u) << "an undefined figure is no point";
  EXPECT_EQ(run.evaluations[0].points[0].value, 0.71);
  EXPECT_EQ(run.calibration.size(), 2u);
  EXPECT_THAT(run.data_lines, ElementsAre("1 file of format csv"));
  EXPECT_THAT(run.warnings, ElementsAre("something is odd"));
  using Setting = std::pair<std::string, std::string>;
  EXPECT_THAT(run.settings,
              ElementsAre(Setting("name", "clicks"), Setting("train.batch_size", "64"),
                          Setting("train.epochs", "2"), Setting("model.hidden", "[8,4]"),
                          Setting("model.tables.deep.name", "deep"),
                          Setting("model.tables.deep.dim", "8")));
  // 10 steps of 4 ms and 30 of 2 ms; time of no stage is "other".
  EXPECT_EQ(run.steps_timed, 40);
  double all = 0;
  for (const StageTime& stage : run.stages) all += stage.ms;
  EXPECT_NEAR(all, 2.5, 1e-9);
  EXPECT_EQ(run.stages[1].name, "wait for reader");
  EXPECT_NEAR(run.stages[1].ms, 0.25, 1e-9);
  EXPECT_NEAR(run.stages.back().ms, 0.25, 1e-9);
}

TEST(RunFilesTest, StepsThatWereLostAreDrawnOnce) {
  const RunFiles run =
      Read(*Folder(std::string(kMetrics) +
                   "{\"time\":3,\"step\":30,\"train_loss\":0.5}\n"
                   "{\"time\":4,\"step\":20,\"event\":\"went_back\",\"from_step\":30}\n"
                   "{\"time\":5,\"step\":30,\"train_loss\":0.55}\n"));
  EXPECT_THAT(StepsOf(run.training[0]), ElementsAre(10, 20, 30));
  EXPECT_EQ(run.training[0].points[2].value, 0.55);
  ASSERT_EQ(run.events.size(), 1u);
  EXPECT_EQ(run.events[0].what, "went back, from step 30");
}

TEST(RunFilesTest, EvaluationSetsAreCurvesOfTheirOwn) {
  const RunFiles run = Read(*Folder(
      "{\"step\":1,\"eval_set\":\"new\",\"eval_auc\":0.5}\n{\"step\":1,\"eval_auc\":0.6}\n"));
  ASSERT_EQ(run.evaluations.size(), 2u);
  EXPECT_EQ(run.evaluations[0].name, "auc");
  EXPECT_EQ(run.evaluations[0].set, "new");
  EXPECT_EQ(run.evaluations[1].set, "");
}

TEST(RunFilesTest, DamageIsSaidAndEverythingElseIsShown) {
  const std::string metrics(kMetrics);
  const RunFiles cut = Read(*Folder(metrics + "{\"time\":3,\"step\":3", "", "", ""));
  EXPECT_FALSE(cut.finished);
  EXPECT_THAT(cut.notes,
              ElementsAre("there is no summary.json: the run still goes on, or it died",
                          "the last line of metrics.jsonl is cut off, and is left out",
                          "there is no job_as_run.json, and no checkpoint that tells the job"));
  EXPECT_THAT(StepsOf(cut.training[0]), ElementsAre(10, 20));
  EXPECT_THAT(ReportPage({cut}), HasSubstr("not finished"));
  const RunFiles torn = Read(*Folder("{\"st\n[1]\n\xff\xfe\n" + metrics, "{\"job\"", "[", "\n"));
  EXPECT_THAT(torn.notes[1], HasSubstr("3 lines of metrics.jsonl cannot be read"));
  EXPECT_THAT(torn.notes[0], HasSubstr("summary.json cannot be read"));
  EXPECT_THAT(Read(*Folder("", "")).notes[1], HasSubstr("no line yet"));
  const auto empty = NewMemoryFileSystem();
  ASSERT_TRUE(empty->MakeDirectories("out").ok());
  EXPECT_THAT(ReadRunFiles(*empty, "out").status().message(),
              HasSubstr("out: there is neither metrics.jsonl nor summary.json in it"));
  EXPECT_EQ(ReadRunFiles(*empty, "nowhere").status().code(), Code::kInvalidArgument);
  EXPECT_THAT(ReadRunFiles(*empty, "nowhere").status().message(), HasSubstr("no such folder"));
}

TEST(RunFilesTest, ALongRunHasNoMorePointsThanCanBeSeen) {
  std::string metrics;
  for (int i = 0; i < 20000; ++i) {
    metrics += "{\"step\":" + std::to_string(i) + ",\"train_loss\":0.5}\n";
  }
  const RunFiles run = Read(*Folder(metrics));
  EXPECT_LE(run.training[0].points.size(), 4096u);
  EXPECT_GT(run.training[0].points.size(), 1000u);
  EXPECT_GT(run.training[0].points.back().step, 19990);
}

// Returns the page without the two scripts, which are the same in every report.
std::string Made(const std::string& page) {
  const size_t scripts = page.find("<script>");
  EXPECT_NE(scripts, page.npos);
  const std::string rest = "<script>" + std::string(kDygraphs) + "</script>\n<script>" +
                           std::string(kReportScript) + "</script>\n</body></html>\n";
  EXPECT_EQ(page.substr(scripts), rest) << "texts of a run stand before the scripts";
  return page.substr(0, scripts);
}

TEST(ReportPageTest, HasEveryPartAndAsksNoNetwork) {
  const std::string page = Made(ReportPage({Read(*Folder(kMetrics))}));
  for (const char* part : {"<h2>Result</h2>", "<h2>Learning</h2>", "<h2>Speed</h2>",
                           "<h2>Calibration</h2>", "<h2>Where time goes</h2>", "<h2>Data</h2>",
                           "<h2>Warnings</h2>", "The job with all its defaults",
                           "<figure class='chart'>", "default-src 'none'", "script-src 'sha256-"}) {
    EXPECT_THAT(page, HasSubstr(part));
  }
  for (const char* none : {"http:", "https:", "src='", "url(", "<link"}) {
    EXPECT_THAT(page, Not(HasSubstr(none)));
  }
}

TEST(ReportPageTest, HostileTextsStayTexts) {
  const std::string evil = "<script>alert('x')</script>\\\"&";
  const std::string json = "\"" + evil + "\"";
  const auto files =
      Folder("{\"step\":1,\"eval_set\":" + json +
                 ",\"eval_auc\":0.5}\n{\"step\":1,\"event\":" + json + "}\n",
             "{\"job\":" + json + "," + json + ":" + json + "}", "{\"name\":" + json + "}",
             "2026 W hdps " + evil + "\n2026 I hdps data: " + evil + "\n");
  WriteText(*files, "out/figures.json",
            "{\"health\":{\"sentence\":" + json + "},\"rows\":{\"tables\":[{" + json + ":" + json +
                "}]}," + json + ":{" + json + ":[" + json + "]}}");
  const RunFiles run = Read(*files);
  ASSERT_NE(run.last_page, "");
  const std::string page = Made(ReportPage({run, run}));
  EXPECT_THAT(page, Not(HasSubstr("<script>")));
  EXPECT_THAT(page, HasSubstr("&lt;script&gt;alert(&#39;x&#39;)&lt;/script&gt;"));
  EXPECT_THAT(page, HasSubstr("\\u003cscript>alert('x')\\u003c/script>"));
  // Each element that holds data ends where it should.
  const auto count = [&page](const std::string& part) {
    size_t times = 0;
    for (size_t at = page.find(part); at != page.npos; at = page.find(part, at + 1)) ++times;
    return times;
  };
  EXPECT_EQ(count("<script type='application/json'>"), count("</script>"));
  EXPECT_EQ(count("<script"), count("</script>"));
}

TEST(ReportPageTest, WhatTheMembersDidLastIsShown) {
  const auto files = Folder(kMetrics);
  WriteText(*files, "out/figures.json",
            "{\"schema\":1,\"training\":{\"step\":20},\"events\":{},\"stragglers\":{\"servers\":["
            "{\"name\":\"server 1\",\"p50\":0.5}]}}");
  const RunFiles run = Read(*files);
  EXPECT_EQ(run.last_page,
            "{\"schema\":1,\"stragglers\":{\"servers\":[{\"name\":\"server 1\",\"p50\":0.5}]}}")
      << "curves and events come from other files";
  const std::string page = Made(ReportPage({run}));
  EXPECT_THAT(page, HasSubstr("<section class='figures'>"));
  EXPECT_THAT(page, HasSubstr(DataElement(run.last_page)));
  EXPECT_THAT(page, HasSubstr("<tr><td>server 1</td><td>0.5</td></tr>")) << "without a script";
  WriteText(*files, "out/figures.json", "{\"schema\"");
  EXPECT_THAT(Read(*files).notes, ElementsAre("figures.json cannot be read"));
  EXPECT_THAT(Made(ReportPage({Read(*files)})), Not(HasSubstr("class='figures'")));
}

TEST(ReportPageTest, TwoRunsAreInOnePictureWithWhatDiffers) {
  const RunFiles a = Read(*Folder(kMetrics));
  RunFiles b = Read(*Folder(kMetrics, kSummary,
                            "{\"name\":\"clicks\",\"train\":{\"batch_size\":128,\"epochs\":2}}"));
  b.folder = "other";
  const std::string page = ReportPage({a, b});
  EXPECT_THAT(page, HasSubstr("<tr><td>train.batch_size</td><td>64</td><td>128</td></tr>"));
  EXPECT_THAT(page, HasSubstr("<tr><td>model.hidden</td><td>[8,4]</td><td></td></tr>"));
  EXPECT_THAT(page, Not(HasSubstr("<td>train.epochs</td>")));
  EXPECT_THAT(page, HasSubstr("A: out"));
  EXPECT_THAT(page, HasSubstr("B: other"));
  const size_t chart = page.find("loss of training</figcaption>");
  ASSERT_NE(chart, page.npos);
  const std::string picture = page.substr(chart, page.find("</figure>", chart) - chart);
  EXPECT_THAT(picture, HasSubstr("{\"label\":\"A: out\",\"color\":0,"));
  EXPECT_THAT(picture, HasSubstr("{\"label\":\"B: other\",\"color\":1,"));
  EXPECT_THAT(ReportPage({a, a}), HasSubstr("both trained the same job"));
}

// Metrics of two evaluation sets. The first set is best at step 20 of 30; the second set has no hit
// rate at step 30.
constexpr const char* kSets =
    "{\"step\":10,\"train_loss\":0.7,\"examples_per_second\":100,\"learning_rate\":0.1}\n"
    "{\"step\":20,\"eval_metrics\":{\"hr@10\":0.5,\"logloss\":0.6}}\n"
    "{\"step\":20,\"eval_set\":\"late\",\"eval_metrics\":{\"hr@10\":0.25,\"logloss\":0.7}}\n"
    "{\"step\":30,\"eval_metrics\":{\"hr@10\":0.375,\"logloss\":0.5}}\n"
    "{\"step\":30,\"eval_set\":\"late\",\"eval_metrics\":{\"hr@10\":null,\"logloss\":0.8},"
    "\"eval_undefined\":{\"hr@10\":\"no group has a label 1\"}}\n";

TEST(ReportPageTest, FiguresOfAllSetsHaveNamesAtTheBestStepAndAtTheLast) {
  const std::string summary =
      "{\"job\":\"clicks\",\"steps\":30,\"best_step\":20,\"best_metric\":\"hr@10\",\"best_value\":"
      "0.5,"
      "\"row_bytes\":2048,\"wall_seconds\":1.25,\"examples_per_second\":1234.5}";
  const std::string page = ReportPage({Read(*Folder(kSets, summary))});
  for (const char* part :
       {"<th>evaluation</th><th>best, step 20</th><th>last, step 30</th>",
        "<td>hit rate@10</td><td>0.500000</td><td>0.375000</td>",
        "<td>hit rate@10 of late</td><td>0.250000</td><td>undefined: no group has a label 1</td>",
        "<td>log loss of late</td><td>0.700000</td><td>0.800000</td>", "<b>hit rate@10</b>",
        "<b>2.00 KiB</b><span>memory of rows</span>", "<b>1.2 s</b><span>in all</span>",
        "<b>1,234</b><span>examples per second</span>"}) {
    EXPECT_THAT(page, HasSubstr(part));
  }
  EXPECT_THAT(page, Not(HasSubstr("eval_")));
  EXPECT_THAT(page, Not(HasSubstr("best_")));
  // Training and both evaluations are in one picture, with the best step.
  const size_t chart = page.find("<figcaption>log loss</figcaption>");
  ASSERT_NE(chart, page.npos);
  const std::string picture = page.substr(chart, page.find("</figure>", chart) - chart);
  for (const char* part : {"{\"label\":\"training\",\"color\":0,\"dashed\":true,",
                           "{\"label\":\"evaluation\",\"color\":0,\"dashed\":false,",
                           "{\"label\":\"evaluation of late\",\"color\":1,\"dashed\":false,",
                           "\"marks\":[{\"label\":\"best\",\"step\":20.0,\"color\":0}]"}) {
    EXPECT_THAT(picture, HasSubstr(part));
  }
}

TEST(ReportPageTest, OnlySettingsThatAPersonGaveDiffer) {
  const auto folder = [](const std::string& given, const std::string& job) {
    auto files = Folder(kMetrics, kSummary, job);
    WriteText(*files, "out/job_as_given.json", given);
    return Read(*files);
  };
  const RunFiles a =
      folder("{\"train\":{\"batch_size\":64,\"epochs\":2},\"model\":{\"embedding_dim\":8}}",
             "{\"train\":{\"batch_size\":64,\"epochs\":2,\"lookahead\":0},"
             "\"model\":{\"tables\":[{\"name\":\"deep\",\"dim\":8}]}}");
  const RunFiles b = folder("{\"train\":{\"batch_size\":64,\"lookahead\":1},\"model\":{}}",
                            "{\"train\":{\"batch_size\":64,\"epochs\":2,\"lookahead\":1},"
                            "\"model\":{\"tables\":[{\"name\":\"deep\",\"dim\":16}]}}");
  const std::string page = ReportPage({a, b});
  EXPECT_THAT(page, HasSubstr("<tr><td>model.embedding_dim</td><td>8</td><td>(default)</td></tr>"));
  EXPECT_THAT(page, HasSubstr("<tr><td>train.lookahead</td><td>0 (default)</td><td>1</td></tr>"));
  for (const char* same : {"<td>train.epochs", "<td>train.batch_size", "<td>model.tables"}) {
    EXPECT_THAT(page, Not(HasSubstr(same)));
  }
}

TEST(ChartTest, CurvesAreDataAndATableOfSomeSteps) {
  Curve loss = {"loss", {}};
  for (int i = 1; i <= 100; ++i) loss.points.push_back({i * 10.0, i * 0.5});
  const Curve rate = {"rate", {}, {{1000, 0.25}, {1005, 0.125}}};
  const std::string chart = LineChart("loss", {{"loss", &loss, 0}, {"rate", &rate, 1, true}});
  EXPECT_THAT(chart, HasSubstr("\"points\":[[10.0,0.5],[20.0,1.0],"));
  EXPECT_THAT(chart, HasSubstr("\"dots\":true,\"points\":[[1000.0,0.25],[1005.0,0.125]]"));
  EXPECT_THAT(chart, HasSubstr("<tr><th>step</th><th>loss</th><th>rate</th></tr>"));
  EXPECT_THAT(chart, HasSubstr("<tr><td>1,005</td><td></td><td>0.125</td></tr></table>"));
  size_t rows = 0;
  for (size_t at = chart.find("<tr><td>"); at != chart.npos; at = chart.find("<tr><td>", at + 1)) {
    ++rows;
  }
  EXPECT_LE(rows, 30u);
  EXPECT_GE(rows, 20u);
  EXPECT_EQ(LineChart("none", {}), "");
}

TEST(ChartTest, CalibrationHasRoundTicksUpToItsLargestRate) {
  const std::vector<CalibrationBin> bins = {{10, 0.31, 0.1}, {0, 0.9, 0.9}};
  const std::string chart = CalibrationChart({{"run", &bins, 0}});
  EXPECT_THAT(chart, HasSubstr(">0.4</text>"));
  EXPECT_THAT(chart, HasSubstr(">0.1</text>"));
  EXPECT_THAT(chart, HasSubstr("predicted 0.31, observed 0.1, 10 examples"));
  EXPECT_THAT(chart, Not(HasSubstr("predicted 0.9")));
}

}  // namespace
}  // namespace hdps
