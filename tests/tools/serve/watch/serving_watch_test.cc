// Tests what is known of answers: every figure of the list, and when the operator hears of drift.
#include "tools/serve/watch/serving_watch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "common/job/job_file.h"
#include "common/job/job_spec.h"
#include "tests/common/platform/settable_clock.h"
#include "tests/tools/serve/watch/scripted_model.h"
#include "tests/worker/data/data_fixture.h"
#include "worker/data/columnar/file_tables.h"

namespace hdps {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

class ServingWatchTest : public ::testing::Test {
 protected:
  ServingWatchTest() {
    model_.score = [this](const ScoreRequest& request) -> Result<ScoreAnswer> {
      return Like(request.rows->num_rows(), mean_, unknown_of_10_);
    };
    options_.warn = [this](const std::string& warning) { warnings_.push_back(warning); };
  }

  // An answer whose predictions are `mean` on average; of 10 rows so many have an unknown city.
  static ScoreAnswer Like(uint64_t rows, float mean, uint64_t unknown_of_10) {
    std::vector<float> predictions;
    for (uint64_t row = 0; row < rows; ++row) {
      predictions.push_back(mean + (row % 2 == 0 ? 0.1f : -0.1f));
    }
    const uint64_t unknown = rows * unknown_of_10 / 10;
    return AnswerOf(std::move(predictions), {rows, 2 * rows}, {0, unknown});
  }
  static void See(ServingWatch& watch, const ScoreAnswer& answer) {
    ScoreRequest request;
    watch.Saw({.request = &request, .answer = &answer});
  }
  // A whole window of such answers.
  void SeeWindow(ServingWatch& watch, float mean, uint64_t unknown_of_10) {
    for (int i = 0; i < 512; ++i) See(watch, Like(10, mean, unknown_of_10));
    watch.Turn();
  }
  // Evaluation data of 320 rows.
  EvaluationAnswers Evaluation() {
    std::string text;
    for (int i = 0; i < 320; ++i) text += "1,u" + std::to_string(i) + "\n";
    WriteText(*files_, "held", text);
    auto evaluation = EvaluationAnswers::Read(*files_, JobWith(R"("eval": ["held"],)"));
    EXPECT_TRUE(evaluation.ok()) << evaluation.status().message();
    return *std::move(evaluation);
  }
  static Job JobWith(const std::string& data) {
    return *ParseJob(R"({"name": "ctr", "data": {"train": ["t"], )" + data + R"( "columns": [
                          {"name": "y", "type": "label"}, {"name": "user"}]},
                        "model": {"type": "logistic", "device": "cpu"}})",
                     "job.json", {});
  }
  double Value(const ServingWatch& watch, const std::string& name, const std::string& label = "") {
    for (const Sample& sample : watch.Samples()) {
      const bool right = label.empty() || sample.labels.back().second == label;
      if (RecordOf(sample.figure).name == name && right) return sample.value;
    }
    ADD_FAILURE() << name << " is not told";
    return -1;
  }

  const std::unique_ptr<FileSystem> files_ = NewMemoryFileSystem();
  SettableClock clock_;
  ScriptedModel model_{{"user", "city"}};
  float mean_ = 0.3f;  // Of what the model answers to the evaluation data.
  uint64_t unknown_of_10_ = 1;
  std::vector<std::string> warnings_;
  ServingWatchOptions options_;
};

TEST_F(ServingWatchTest, TellsEveryFigureOfTheList) {
  options_.evaluation = Evaluation();
  options_.versions = [] {
    VersionFacts facts;
    facts.taken_ms = 3000;
    facts.whole = {.count = 2, .bytes = 300, .ns = 1'500'000'000};
    facts.deltas = {.count = 5, .bytes = 50, .ns = 250'000'000};
    facts.refused[static_cast<size_t>(Refusal::kUnfit)] = 3;
    return facts;
  };
  auto log = RequestLog::Open(*files_, JobWith(""), {.path = "log", .share = 1});
  ASSERT_TRUE(log.ok()) << log.status().message();
  options_.log = *std::move(log);
  ServingWatch watch(model_, clock_, std::move(options_));
  watch.Turn();
  SeeWindow(watch, 0.6f, 9);
  ScoreRequest request;
  request.rows = TableOfTexts({"user"}, {{"a", "b\nc"}});
  const ScoreAnswer answer = Like(2, 0.5f, 0);
  watch.Saw({.protocol = ServingProtocol::kMessage,
             .time_ns = 2'000'000'000,
             .request = &request,
             .answer = &answer});
  for (const int code : {400, 404, 413, 503, 500, 431}) watch.Saw({.code = code});
  watch.Close();

  const std::string text = ServingMetrics(*files_, {&watch});
  size_t told = 0, series = 0;
  for (const FigureRecord& record : kFigures) {
    if (record.role != FigureRole::kServing) continue;
    ++told;
    const std::string name = "\n" + std::string(record.name) +
                             (record.kind == FigureKind::kHistogram ? "_count" : "") +
                             "{model=\"ctr\"";
    EXPECT_THAT(text, HasSubstr(name));
  }
  for (const char c : text) series += c == '\n';
  for (size_t at = 0; (at = text.find("# ", at)) != std::string::npos; ++at) --series;
  std::printf("[ FIGURE ] %zu figures of serving, %zu series with two features\n", told, series);
  EXPECT_LE(series, 150u + 4 * 2);
  for (const char* const line :
       {"hdps_serving_rows_total{model=\"ctr\"} 5122",
        "hdps_serving_keys_total{model=\"ctr\",feature=\"city\"} 10244",
        "hdps_serving_unknown_keys_total{model=\"ctr\",feature=\"city\"} 4608",
        "hdps_serving_unknown_keys_total{model=\"ctr\",feature=\"user\"} 0",
        "hdps_serving_request_seconds_count{model=\"ctr\",protocol=\"message\"} 1",
        "hdps_serving_request_seconds_sum{model=\"ctr\",protocol=\"message\"} 2",
        "hdps_serving_request_seconds_bucket{model=\"ctr\",protocol=\"message\",le=\"1\"} 0",
        "hdps_serving_request_seconds_bucket{model=\"ctr\",protocol=\"message\",le=\"2.5\"} 1",
        "hdps_serving_request_seconds_count{model=\"ctr\",protocol=\"infer_json\"} 518",
        "hdps_serving_errors_total{model=\"ctr\",code=\"413\"} 1",
        "hdps_serving_errors_total{model=\"ctr\",code=\"other\"} 2",
        "hdps_serving_prediction_drift{model=\"ctr\"} 1",
        "hdps_serving_feature_drift{model=\"ctr\",feature=\"city\"} 1",
        "hdps_serving_feature_drift{model=\"ctr\",feature=\"user\"} 0",
        "hdps_serving_step{model=\"ctr\"} 7",
        "hdps_serving_version_age_seconds{model=\"ctr\"} 2",
        "hdps_serving_refreshes_total{model=\"ctr\",kind=\"whole\"} 2",
        "hdps_serving_refresh_seconds_total{model=\"ctr\",kind=\"delta\"} 0.25",
        "hdps_serving_refresh_bytes_total{model=\"ctr\",kind=\"whole\"} 300",
        "hdps_serving_refused_versions_total{model=\"ctr\",reason=\"unfit\"} 3",
        "hdps_serving_logged_rows_total{model=\"ctr\"} 1",
        "hdps_serving_unlogged_rows_total{model=\"ctr\"} 1"}) {
    EXPECT_THAT(text, HasSubstr("\n" + std::string(line) + "\n"));
  }
  EXPECT_FLOAT_EQ(static_cast<float>(Value(watch, "hdps_serving_mean_prediction")), 0.6f);
  EXPECT_FLOAT_EQ(static_cast<float>(Value(watch, "hdps_serving_evaluation_mean_prediction")),
                  0.3f);
  EXPECT_EQ(Value(watch, "hdps_serving_evaluation_unknown_share", "city"), 3.0 / 64);
}

TEST_F(ServingWatchTest, TellsWhenDriftBeginsAndWhenItEnds) {
  options_.evaluation = Evaluation();
  ServingWatch watch(model_, clock_, std::move(options_));
  watch.Turn();
  SeeWindow(watch, 0.3f, 1);
  EXPECT_THAT(warnings_, ElementsAre());
  SeeWindow(watch, 0.5f, 1);
  ASSERT_EQ(warnings_.size(), 1u);
  EXPECT_EQ(warnings_[0],
            "predictions drift: their mean is 0.5 over the last 5,120 rows, and 0.3 "
            "over the job's evaluation data, 2 of its standard deviation away");
  SeeWindow(watch, 0.5f, 1);  // It is told once.
  EXPECT_EQ(warnings_.size(), 1u);
  SeeWindow(watch, 0.3f, 8);
  ASSERT_EQ(warnings_.size(), 3u);
  EXPECT_THAT(warnings_[1], HasSubstr("predictions are in line again: their mean is 0.3 over"));
  EXPECT_THAT(warnings_[2],
              HasSubstr("features drift, so look whether their values are written as in training; "
                        "keys without a row over the last 5,120 rows and over the job's "
                        "evaluation data: 'city' 40% and 4.69%"));
  EXPECT_EQ(Value(watch, "hdps_serving_prediction_drift"), 0);
  SeeWindow(watch, 0.3f, 1);
  ASSERT_EQ(warnings_.size(), 4u);
  EXPECT_THAT(warnings_[3], HasSubstr("features are in line again; keys without a row"));
  // Too few rows, or rows of too few requests, tell nothing.
  See(watch, Like(8000, 0.9f, 1));
  watch.Turn();
  for (int i = 0; i < 200; ++i) See(watch, Like(1, 0.9f, 1));
  EXPECT_EQ(warnings_.size(), 4u);
}

TEST_F(ServingWatchTest, OneHugePredictionIsForgottenWithItsWindow) {
  options_.evaluation = Evaluation();
  ServingWatch watch(model_, clock_, std::move(options_));
  watch.Turn();
  See(watch, Like(2, 1e30f, 1));
  SeeWindow(watch, 0.3f, 1);
  for (int window = 0; window < 2; ++window) {
    SeeWindow(watch, 0.3f, 1);
    EXPECT_FLOAT_EQ(static_cast<float>(Value(watch, "hdps_serving_mean_prediction")), 0.3f);
    EXPECT_EQ(Value(watch, "hdps_serving_prediction_drift"), 0);
  }
}

TEST_F(ServingWatchTest, ScoresTheEvaluationDataByEachVersionAtMostOnceAMinute) {
  options_.evaluation = Evaluation();
  model_.is_ready = false;
  ServingWatch watch(model_, clock_, std::move(options_));
  watch.Turn();
  EXPECT_EQ(model_.scored, 0);
  model_.is_ready = true;
  watch.Turn();
  watch.Turn();
  EXPECT_EQ(model_.scored, 10);  // 320 rows by 32.
  // A newer version predicts more, of the evaluation data too: that is no drift.
  model_.at = 8;
  mean_ = 0.5f;
  watch.Turn();
  EXPECT_EQ(model_.scored, 10);
  for (int i = 0; i < 512; ++i) See(watch, Like(10, 0.3f, 1));
  clock_.now_ms += ServingWatch::kScoreEveryMs;
  watch.Turn();  // The window begins anew, so it has answers of this version alone.
  EXPECT_EQ(model_.scored, 20);
  SeeWindow(watch, 0.5f, 1);
  EXPECT_THAT(warnings_, ElementsAre());
}

TEST_F(ServingWatchTest, SaysWhyThereIsNothingToCompareWith) {
  const auto none = EvaluationAnswers::Read(*files_, JobWith(""));
  EXPECT_THAT(none.status().message(), HasSubstr("the job has no evaluation data"));
  const auto absent = EvaluationAnswers::Read(*files_, JobWith(R"("eval": ["gone.csv"],)"));
  EXPECT_THAT(absent.status().message(), HasSubstr("there is no file"));
  EXPECT_THAT(absent.status().message(), HasSubstr("gone.csv"));
  options_.evaluation = Evaluation();
  model_.score = [](const ScoreRequest&) -> Result<ScoreAnswer> {
    return Status(Code::kInvalidArgument, "input 'city' is missing");
  };
  ServingWatch watch(model_, clock_, std::move(options_));
  watch.Turn();
  model_.at = 8;
  clock_.now_ms += ServingWatch::kScoreEveryMs;
  watch.Turn();
  EXPECT_THAT(warnings_,
              ElementsAre(HasSubstr("the job's evaluation data cannot be scored: input 'city' is "
                                    "missing")));
  SeeWindow(watch, 0.5f, 1);
  EXPECT_FLOAT_EQ(static_cast<float>(Value(watch, "hdps_serving_mean_prediction")), 0.5f);
}

TEST_F(ServingWatchTest, CountsFromManyThreadsAtOnce) {
  auto log = RequestLog::Open(*files_, JobWith(""), {.path = "log", .share = 1});
  ASSERT_TRUE(log.ok());
  options_.log = *std::move(log);
  ServingWatch watch(model_, clock_, std::move(options_));
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&watch] {
      for (int i = 0; i < 300; ++i) {
        ScoreRequest request;
        request.rows = TableOfTexts({"user"}, {{"a", "b"}});
        const ScoreAnswer answer = Like(2, 0.5f, 5);
        watch.Saw({.request = &request, .answer = &answer});
        if (i % 50 == 0) static_cast<void>(watch.Samples());
      }
    });
  }
  watch.Turn();
  for (std::thread& thread : threads) thread.join();
  watch.Close();
  EXPECT_EQ(Value(watch, "hdps_serving_rows_total"), 2400);
  EXPECT_EQ(Value(watch, "hdps_serving_unknown_keys_total", "city"), 1200);
  EXPECT_EQ(Value(watch, "hdps_serving_logged_rows_total"), 2400);
  const std::string text = *ReadWholeFile(*files_, "log", 1u << 20);
  EXPECT_EQ(std::ranges::count(text, '\n'), 2400);
  EXPECT_THAT(text, Not(HasSubstr("\n\n")));
}

TEST_F(ServingWatchTest, ABatchOfSeveralRequestsCountsOnce) {
  ServingWatch watch(model_, clock_, std::move(options_));
  ScoreAnswer first = Like(3, 0.5f, 0), second = Like(2, 0.5f, 0);
  second.begins_batch = false;
  for (const ScoreAnswer& answer : {first, second, second, first}) See(watch, answer);
  EXPECT_EQ(Value(watch, "hdps_serving_rows_total"), 10);
  EXPECT_EQ(Value(watch, "hdps_serving_batches_total"), 2);
}

}  // namespace
}  // namespace hdps
