// Tests the report of a run: the lines of metrics.jsonl, the progress line, the summary.
#include "scheduler/report/run_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <memory>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "common/job/job_spec.h"
#include "common/job/spec/train_spec.h"
#include "common/platform/fault_file_system.h"
#include "common/protocol/command_messages.h"
#include "scheduler/report/run_summary.h"
#include "tests/common/platform/settable_clock.h"

namespace hdps {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

class RunReportTest : public ::testing::Test {
 protected:
  RunReportTest() {
    job_.train.epochs = 4;
    EXPECT_TRUE(files_->MakeDirectories("out").ok());
  }
  std::vector<nlohmann::json> Metrics() {
    std::istringstream text(*ReadWholeFile(*files_, "out/metrics.jsonl", 1u << 20));
    std::vector<nlohmann::json> lines;
    for (std::string line; std::getline(text, line);) lines.push_back(nlohmann::json::parse(line));
    return lines;
  }
  std::unique_ptr<FileSystem> files_ = NewMemoryFileSystem();
  Job job_;
};

TEST_F(RunReportTest, KeptRowsAreToldWhereThereAreAny) {
  RunReport report(*files_, "out", job_, "", false);
  report.Begin(1000, {});
  ProgressState state{10, 0, 0.5, 4000, 2000};
  report.Progress(3000, state);
  state.examples += 100;
  state.cache = {1000, 900, 30, 4096};
  report.Progress(4000, state);
  const std::vector<nlohmann::json> lines = Metrics();
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_FALSE(lines[0].contains("cache"));
  const nlohmann::json expected = {
      {"hits", 900}, {"misses", 100}, {"hit_rate", 0.9}, {"swaps", 30}, {"bytes", 4096}};
  EXPECT_EQ(lines[1]["cache"], expected);
  RunSummary summary;
  EXPECT_THAT(SummaryTable(summary, "out"), Not(HasSubstr("kept rows")));
  summary.cache = state.cache;
  EXPECT_THAT(SummaryTable(summary, "out"), HasSubstr("90.00 % of the keys, 30 brought in"));
  ASSERT_TRUE(WriteSummary(*files_, "out", summary).ok());
  EXPECT_EQ(nlohmann::json::parse(*ReadWholeFile(*files_, "out/summary.json", 1u << 20))["cache"],
            expected);
}

TEST_F(RunReportTest, LossIsThatSinceTheLastLineAndSpeedThatOfTheLastSecondsOfTraining) {
  RunReport report(*files_, "out", job_, "", false);
  report.Begin(1000, {});
  const std::string first = report.Progress(3000, {10, 0, 0.5, 4000, 2000});
  EXPECT_THAT(first, AllOf(HasSubstr("epoch 1/4"), HasSubstr("step 10"),
                           HasSubstr("2,000 examples/s"), HasSubstr("loss 0.5000"),
                           // An eighth took 2 s.
                           HasSubstr("00:14 left"), Not(HasSubstr("AUC"))));
  Evaluation evaluation{.examples = 16281};
  evaluation.figures = {{"auc", 0.9125}, {"logloss", 0.31}};
  FillKnownFigures(&evaluation);
  report.Evaluated(3500, {10, 0, 0.5, 4000, 2000}, evaluation);
  report.GoOn(3500);
  // 5,000 in 2.5 s: the time of the evaluation does not count.
  EXPECT_THAT(report.Progress(4000, {20, 2, 0.0, 5000, 2100}),
              AllOf(HasSubstr("2,000 examples/s"), HasSubstr("loss 0.1000"),
                    HasSubstr("AUC 0.9125"), HasSubstr("00:03 left")));
  EXPECT_THAT(report.Progress(5000, {20, 2, 0.0, 5000, 2100}), HasSubstr("2,000 examples/s"));
  EXPECT_THAT(report.Progress(8000, {20, 2, 0.0, 5000, 2100}),
              AllOf(HasSubstr(" 0 examples/s"), Not(HasSubstr("loss"))));
  const std::vector<nlohmann::json> lines = Metrics();
  ASSERT_EQ(lines.size(), 4u);
  EXPECT_EQ(lines[0]["time"], 2.0);
  EXPECT_EQ(lines[0]["train_loss"], 0.5);
  EXPECT_EQ(lines[1]["eval_auc"], 0.9125);
  EXPECT_EQ(lines[1]["eval_examples"], 16281);
  EXPECT_FALSE(lines[1].contains("eval_undefined"));
  EXPECT_EQ(lines[2]["examples_per_second"], 2000.0);
  EXPECT_TRUE(lines[3]["train_loss"].is_null());
  EXPECT_EQ(report.TakeTrouble(), std::nullopt);
}

TEST_F(RunReportTest, NoSpeedIsThatOfAnInstant) {
  RunReport report(*files_, "out", job_, "", false);
  report.Begin(0, {});
  EXPECT_THAT(report.Progress(20, {1, 0, 0.1, 60'000, 60}), Not(HasSubstr("examples/s")));
  // A heartbeat per second with 100,000 examples each; at the end of an epoch the count is exact.
  for (int second = 1; second <= 5; ++second) {
    ProgressState state{.clock = 10 * second, .epoch_progress = 0.1};
    state.examples = 100'000 * static_cast<uint64_t>(second);
    report.Progress(second * 1000, state);
  }
  report.Progress(5020, {51, 1, 0, 560'000, 60});
  report.GoOn(9000);  // Training goes on after an evaluation.
  report.Progress(9010, {52, 1, 0, 561'000, 60});
  for (const nlohmann::json& line : Metrics()) {
    if (line["time"] == 0.02) {
      EXPECT_TRUE(line["examples_per_second"].is_null());
      continue;
    }
    EXPECT_GT(line["examples_per_second"], 99'000) << line;
    EXPECT_LT(line["examples_per_second"], 140'000) << line;
  }
}

TEST_F(RunReportTest, OtherFiguresThanTheAucAreShownAndMissingOnesSayWhy) {
  RunReport report(*files_, "out", job_, "", false);
  report.Begin(0, {});
  report.Progress(1000, {10, 0, 0.5, 100, 60});
  Evaluation evaluation{.examples = 90};
  evaluation.figures = {{"hr@10", 0.375, "2 of 9 groups have no label 1 and are left out"},
                        {"ece", kNan, "all weights are 0"},
                        {"rmse", kNan, "all weights are 0"}};
  FillKnownFigures(&evaluation);
  report.Evaluated(1000, {10, 0, 0.5, 100, 60}, evaluation);
  EXPECT_THAT(report.Progress(2000, {20, 0, 0.9, 200, 100}), HasSubstr("hr@10 0.3750"));
  EXPECT_EQ(Describe(evaluation),
            "hr@10 0.375000, ece undefined (all weights are 0), rmse undefined over 90 examples");
  const nlohmann::json why = {{"ece", "all weights are 0"}, {"rmse", "all weights are 0"}};
  EXPECT_EQ(Metrics()[1]["eval_undefined"], why);
  RunSummary summary;
  summary.evaluation = evaluation;
  summary.eval_sets = {{"eval", evaluation}, {"late", evaluation}};
  summary.best_step = 10;
  summary.best_metric = "hr@10";
  summary.best_value = 0.375;
  summary.best_auc = summary.best_logloss = kNan;
  ASSERT_TRUE(WriteSummary(*files_, "out", summary).ok());
  const nlohmann::json json =
      nlohmann::json::parse(*ReadWholeFile(*files_, "out/summary.json", 1u << 20));
  EXPECT_EQ(json["eval_undefined"], why);
  EXPECT_EQ(json["eval_sets"]["late"]["metrics"]["hr@10"], 0.375);
  EXPECT_EQ(json["eval_sets"]["late"]["undefined"], why);
  EXPECT_EQ(json["best_metric"], "hr@10");
  EXPECT_EQ(json["best_value"], 0.375);
  EXPECT_THAT(SummaryTable(summary, "out"),
              AllOf(HasSubstr("eval ece      undefined: all weights are 0"),
                    HasSubstr("eval rmse     undefined\n"), HasSubstr("eval of late  hr@10 0.375"),
                    HasSubstr("step 10, hr@10 0.375000; not kept"), Not(HasSubstr("nan"))));
}

TEST_F(RunReportTest, TheJobAsItWasGivenIsKept) {
  RunReport report(*files_, "out", job_, "{\"seed\": 3}\n", false);
  EXPECT_EQ(*ReadWholeFile(*files_, "out/job_as_given.json", 1u << 20), "{\"seed\": 3}\n");
}

TEST_F(RunReportTest, LinesGoOnWhenAFullDiskHasSpaceAgain) {
  const auto clock = std::make_shared<SettableClock>();
  FaultFileOptions full;
  full.faults = {{FileFault::Kind::kFull, "metrics.jsonl", 0, {1000, 1000, ""}}};
  std::unique_ptr<FileSystem> memory = NewMemoryFileSystem();
  ASSERT_TRUE(memory->MakeDirectories("out").ok());
  files_ = NewFaultFileSystem(std::move(memory), full, clock);
  RunReport report(*files_, "out", job_, "", false);
  report.Begin(0, {});
  report.Progress(1000, {10, 0, 0.5, 100, 50});
  clock->now_ms += 1000;
  report.Progress(2000, {20, 0, 0.5, 200, 90});
  report.Progress(3000, {30, 0, 0.5, 300, 130});
  EXPECT_THAT(report.TakeTrouble().value_or(""), HasSubstr("No space left"));
  EXPECT_EQ(report.TakeTrouble(), std::nullopt);
  clock->now_ms += 1000;
  report.Progress(4000, {40, 0, 0.5, 400, 170});
  std::istringstream text(*ReadWholeFile(*files_, "out/metrics.jsonl", 1u << 20));
  std::vector<std::string> lines;
  for (std::string line; std::getline(text, line);) {
    if (!line.empty()) lines.push_back(line);
  }
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_EQ(nlohmann::json::parse(lines[1])["step"], 40);
  EXPECT_EQ(report.TakeTrouble(), std::nullopt);
}

TEST_F(RunReportTest, MaxStepsCountsWhereItEndsTheJobFirst) {
  job_.train.max_steps = 100;
  RunReport report(*files_, "out", job_, "", false);
  report.Begin(0, {50, 0, 0, 0, 0});  // The run resumes half way.
  EXPECT_THAT(report.Progress(10000, {75, 0, 0.1, 100, 1}), HasSubstr("00:10 left"));
}

TEST_F(RunReportTest, EpochsCountFromOneForPeople) {
  RunReport report(*files_, "out", job_, "", false);
  report.Begin(0, {});
  ProgressState state{10, 0, 0.5, 100, 1};
  EXPECT_THAT(report.Progress(1000, state), HasSubstr("epoch 1/4"));
  state = {20, 1, 0, 200, 2, {}, /*epoch_begun=*/false};  // The first one is complete.
  EXPECT_THAT(report.Progress(2000, state), HasSubstr("epoch 1/4"));
  report.Evaluated(2500, state, {10, kNan, 0.5, "all 10 labels are 1"});
  state = {30, 1, 0.5, 300, 3};
  EXPECT_THAT(report.Progress(3000, state), HasSubstr("epoch 2/4"));
  state = {80, 4, 0, 800, 3, {}, /*epoch_begun=*/false};
  EXPECT_THAT(report.Progress(4000, state), HasSubstr("epoch 4/4"));
  std::vector<int> epochs, done;
  for (const nlohmann::json& line : Metrics()) {
    epochs.push_back(line["epoch"]);
    done.push_back(line["epochs_done"]);
  }
  EXPECT_THAT(epochs, ElementsAre(1, 1, 1, 2, 4));
  EXPECT_THAT(done, ElementsAre(0, 1, 1, 1, 4));
  EXPECT_TRUE(Metrics()[2]["eval_auc"].is_null());
  EXPECT_EQ(Metrics()[2]["eval_auc_undefined"], "all 10 labels are 1");
}

TEST_F(RunReportTest, RowsOfTablesAndParametersOfLayersAreTwoThings) {
  RunSummary summary;
  summary.rows = 1234;
  summary.dense_parameters = 56789;
  summary.dense_rows = 12;
  EXPECT_THAT(SummaryTable(summary, "out"),
              HasSubstr("1,234 rows of embedding tables, 56,789 in dense layers"));
  ASSERT_TRUE(WriteSummary(*files_, "out", summary).ok());
  const nlohmann::json json =
      nlohmann::json::parse(*ReadWholeFile(*files_, "out/summary.json", 1u << 20));
  EXPECT_EQ(json["rows"], 1234);
  EXPECT_EQ(json["dense_parameters"], 56789);
  EXPECT_EQ(json["dense_rows"], 12);
}

TEST_F(RunReportTest, AResumedRunAddsToItsMetrics) {
  for (const bool continued : {false, true, true, false}) {
    RunReport report(*files_, "out", job_, "", continued);
    report.Begin(0, {});
    EXPECT_EQ(report.Progress(1, {}), "") << "nothing is known yet";
    report.Progress(2, {1, 0, 0.1, 10, 7});
    if (!continued) {
      EXPECT_EQ(Metrics().size(), 1u);
    } else {
      EXPECT_GT(Metrics().size(), 1u);
    }
  }
}

TEST_F(RunReportTest, SummaryHasNoNan) {
  RunSummary summary;
  summary.job = "na\"me";
  summary.mode = "ssp";
  Evaluation evaluation{.examples = 10};
  evaluation.figures = {{"auc", kNan, "all 10 labels are 0"},
                        {"logloss", 0.5},
                        {"group_auc", 0.75, "3 of 5 groups have labels of one class"}};
  evaluation.bins = {{2, 0.25, 0.5}, {}};
  FillKnownFigures(&evaluation);
  summary.evaluation = evaluation;
  summary.digest[0] = 0xab;
  summary.digest[1] = 1;
  ASSERT_TRUE(WriteSummary(*files_, "out", summary).ok());
  const nlohmann::json json =
      nlohmann::json::parse(*ReadWholeFile(*files_, "out/summary.json", 1u << 20));
  EXPECT_EQ(json["job"], "na\"me");
  EXPECT_TRUE(json["eval_auc"].is_null());
  EXPECT_EQ(json["eval_auc_undefined"], "all 10 labels are 0");
  EXPECT_EQ(json["eval_logloss"], 0.5);
  EXPECT_TRUE(json["train_logloss"].is_null());
  EXPECT_TRUE(json["eval_metrics"]["auc"].is_null());
  EXPECT_EQ(json["eval_metrics"]["group_auc"], 0.75);
  EXPECT_EQ(json["eval_calibration"][0]["observed"], 0.5);
  EXPECT_TRUE(json["eval_calibration"][1]["observed"].is_null());
  EXPECT_EQ(json["digest"], "00000000000000ab0000000000000001");
  const std::string table = SummaryTable(summary, "out");
  EXPECT_THAT(table, AllOf(HasSubstr("eval logloss"), HasSubstr("Done."), Not(HasSubstr("nan")),
                           HasSubstr("eval AUC       undefined: all 10 labels are 0"),
                           HasSubstr("eval group_auc"), HasSubstr("0.750000 (3 of 5 groups")));
  // With softmax it was not requested.
  summary.evaluation = Evaluation{.examples = 10, .figures = {{"logloss", kNan}}};
  EXPECT_THAT(SummaryTable(summary, "out"),
              AllOf(Not(HasSubstr("AUC")), HasSubstr("eval logloss  undefined\n"),
                    HasSubstr("eval examples 10\n")));
}

}  // namespace
}  // namespace hdps
