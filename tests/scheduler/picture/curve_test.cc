// Tests that curves and the history of a run keep to their memory, however long the job runs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <span>
#include <string>

#include "common/platform/file_system.h"
#include "scheduler/picture/run_history.h"

namespace hdps {
namespace {

using ::testing::HasSubstr;

std::string Line(Clock step, double loss) {
  return R"({"time": 1.5, "step": )" + std::to_string(step) +
         R"(, "examples_per_second": 100, "train_loss": )" + std::to_string(loss) +
         R"(, "learning_rate": 0.01})";
}

TEST(Curve, HalvesItsResolutionWhenItIsFull) {
  Curve curve("train_loss", "");
  // About eleven days of lines, one a second.
  constexpr Clock kValues = 1'000'000;
  for (Clock step = 1; step <= kValues; ++step) {
    curve.Add(step, static_cast<double>(step), static_cast<uint64_t>(step));
    ASSERT_LT(curve.points().size(), Curve::kPointsMax);
  }
  // What is dropped next is never more than half.
  EXPECT_GE(curve.points().size(), Curve::kPointsMax / 2 - 1);
  const Curve::Point& first = curve.points().front();
  const Clock each = first.step;
  EXPECT_DOUBLE_EQ(first.value, static_cast<double>(1 + each) / 2);
  for (size_t i = 1; i < curve.points().size(); ++i) {
    EXPECT_EQ(curve.points()[i].step - curve.points()[i - 1].step, each);
    EXPECT_DOUBLE_EQ(curve.points()[i].value - curve.points()[i - 1].value,
                     static_cast<double>(each));
  }
  EXPECT_GT(curve.points().back().step, kValues - each);
}

TEST(Curve, GoesBackWithTheJob) {
  Curve curve("train_loss", "");
  for (Clock step = 10; step <= 100; step += 10) curve.Add(step, 1, 5);
  EXPECT_EQ(curve.changed(), 0u);
  curve.Add(55, 2, 6);
  EXPECT_EQ(curve.changed(), 6u);
  ASSERT_EQ(curve.points().size(), 6u);
  EXPECT_EQ(curve.points()[4].step, 50);
  EXPECT_EQ(curve.points()[5].step, 55);
}

TEST(RunHistory, KeepsToItsLimits) {
  RunHistory history;
  for (Clock step = 1; step <= 1000; ++step) {
    history.TakeLine(R"({"step": )" + std::to_string(step) + R"(, "eval_set": "set)" +
                         std::to_string(step % 100) + R"(", "eval_metrics": {"auc": 0.5}})",
                     1, std::nullopt);
    history.TakeEvent({.text = std::to_string(step)});
    history.TakeCheckpoint({.step = step});
  }
  EXPECT_EQ(history.curves().size(), RunHistory::kCurvesMax);
  EXPECT_EQ(history.events().size(), RunHistory::kEventsMax);
  EXPECT_EQ(history.checkpoints().size(), RunHistory::kCheckpointsMax);
  EXPECT_EQ(history.events().back().text, "1000");
  EXPECT_EQ(history.checkpoints().back().step, 1000);
}

TEST(RunHistory, ReadsTheLinesOfTheProcessBefore) {
  const std::unique_ptr<FileSystem> files = NewMemoryFileSystem();
  RunHistory live, read;
  std::string text;
  const auto tell = [&](const std::string& line) {
    live.TakeLine(line, 3, 1000.5);
    text += line + "\n";
  };
  for (Clock step = 1; step < 5000; ++step) tell(Line(step, 1.0 / static_cast<double>(step)));
  tell(R"x({"step": 5000, "event": "lost", "member": "worker 1 (a 17)", "cause": "it ended"})x");
  tell(R"({"step": 4000, "event": "went_back", "from_step": 5000, "stood_seconds": 2.5})");
  tell(R"({"step": 4100, "eval_metrics": {"auc": 0.75, "ece": null}})");
  tell(R"({"step": 4100, "eval_set": "late", "eval_metrics": {"auc": 0.5}})");
  const std::string cut = text + R"({"step": 4200, "train_lo)";
  std::unique_ptr<WritableFile> file = *files->Create("metrics.jsonl");
  ASSERT_TRUE(file->Append(std::as_bytes(std::span(cut))).ok());
  ASSERT_TRUE(file->Close().ok());
  read.TakeFile(*files, "metrics.jsonl", 3);
  for (const RunHistory* history : {&live, &read}) {
    ASSERT_EQ(history->curves().size(), 6u);
    EXPECT_EQ(history->curves()[0].name(), "train_loss");
    EXPECT_EQ(history->curves()[0].points().size(), live.curves()[0].points().size());
    EXPECT_EQ(history->curves()[5].set(), "late");
    ASSERT_EQ(history->evaluations().size(), 3u);
    EXPECT_EQ(history->evaluations()[0].value, 0.75);
    EXPECT_TRUE(std::isnan(history->evaluations()[1].value));
    ASSERT_EQ(history->events().size(), 2u);
    EXPECT_EQ(history->events()[0].text, "worker 1 (a 17) was lost");
    EXPECT_EQ(history->events()[1].cause, "it ended");
    EXPECT_EQ(history->events()[1].seconds, 2.5);
    EXPECT_THAT(history->events()[1].text, HasSubstr("step 4000"));
  }
  EXPECT_EQ(live.events()[0].time, 1000.5);
  EXPECT_EQ(read.events()[0].time, std::nullopt);
}

}  // namespace
}  // namespace hdps
