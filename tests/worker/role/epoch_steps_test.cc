// Tests the steps of an epoch from any position, and when they have to be opened again.
#include "worker/role/epoch_steps.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "common/protocol/view.h"
#include "tests/worker/step/step_fixture.h"

namespace hdps {
namespace {

class EpochStepsTest : public StepTest {
 protected:
  EpochStepsTest() : StepTest({"train.batch_size=10"}) {
    std::string text;
    for (int i = 0; i < 45; ++i) text += std::to_string(i % 2) + "," + std::to_string(i) + ",k\n";
    EXPECT_TRUE(WriteFileAtomically(*files_, "train.csv", text).ok());
  }
  bool IsAt(const EpochPosition& position) {
    const Result<bool> at = steps_.IsAt(position);
    EXPECT_TRUE(at.ok()) << at.status().message();
    return at.ok() && *at;
  }
  void Open(const EpochPosition& position, const EpochSplit& split = {}) {
    const Status status = steps_.Open(job_, position, split);
    ASSERT_TRUE(status.ok()) << status.message();
  }
  // Returns the numbers of all examples in the remaining steps, a list per step.
  std::vector<std::vector<float>> Rest() {
    std::vector<std::vector<float>> rest;
    while (steps_.window().Fill(1, 1).ok() && steps_.window().size() > 0) {
      rest.emplace_back();
      for (const StepParts::Part& part : steps_.window().at(0).prepared->parts.parts()) {
        rest.back().insert(rest.back().end(), part.batch.numeric.begin(), part.batch.numeric.end());
      }
      steps_.Pop();
    }
    return rest;
  }
  // Enters a view in which this worker is the second of two.
  void EnterSecondView() {
    View view = *servers_.view();
    view.view = ViewId{2};
    view.workers.push_back({PeerId{101}, 1, ""});
    servers_.channel().OnView(std::make_shared<const View>(view), WorkerId{1});
    servers_.channel().WaitForAnything();
  }

  EpochSteps steps_{job_, *files_, servers_.channel(), *clock_, *executor_};
};

TEST_F(EpochStepsTest, SkipsTheStepsBeforeThePosition) {
  Open({.epoch = 1, .epoch_start = 5, .clock = 5});
  const std::vector<std::vector<float>> all = Rest();
  ASSERT_EQ(all.size(), 5u);
  EXPECT_EQ(all[4].size(), 5u);
  Open({.epoch = 1, .epoch_start = 5, .clock = 8});
  EXPECT_EQ(Rest(), (std::vector<std::vector<float>>{all[3], all[4]}));
  Open({.epoch = 2, .epoch_start = 10, .clock = 10});
  EXPECT_NE(Rest(), all) << "each epoch has an order of its own";
}

TEST_F(EpochStepsTest, ArePlacedBehindWhatWasPopped) {
  EXPECT_FALSE(IsAt({})) << "nothing is open";
  Open({});
  EXPECT_TRUE(IsAt({}));
  ASSERT_TRUE(steps_.window().Fill(1, 1).ok());
  steps_.Pop();
  EXPECT_FALSE(IsAt({}));
  EXPECT_TRUE(IsAt({.clock = 1}));
  EXPECT_FALSE(IsAt({.epoch = 1, .epoch_start = 1, .clock = 1}));
  steps_.Close();
  EXPECT_FALSE(IsAt({.clock = 1}));
}

TEST_F(EpochStepsTest, AnotherViewNeedsOthers) {
  Open({});
  EnterSecondView();
  EXPECT_FALSE(IsAt({}));
}

TEST_F(EpochStepsTest, AnEpochDoesNotBeginAheadOfTheWorker) {
  const Result<bool> at = steps_.IsAt({.epoch = 1, .epoch_start = 5, .clock = 4});
  ASSERT_FALSE(at.ok());
  EXPECT_EQ(at.status().code(), Code::kInvalidArgument);
  EXPECT_EQ(at.status().message(), "epoch 2 begins at step 5, this worker is at 4");
}

TEST_F(EpochStepsTest, AWorkerHasItsPartOfEachStepAndWhereLayersReadThemAllRowsBesideIt) {
  Open({});
  const std::vector<std::vector<float>> whole = Rest();
  EnterSecondView();
  Open({});
  const std::vector<std::vector<float>> part = Rest();
  ASSERT_EQ(part.size(), whole.size());
  for (size_t s = 0; s < part.size(); ++s) {
    std::vector<float> second;
    for (size_t i = 1; i < whole[s].size(); i += 2) second.push_back(whole[s][i]);
    EXPECT_EQ(part[s], second);
  }
  Open({}, {.whole_batch = true});
  ASSERT_TRUE(steps_.window().Fill(1, 1).ok());
  const StepParts::Part& first = steps_.window().at(0).prepared->parts.parts()[0];
  EXPECT_EQ(first.batch.numeric, part[0]);
  EXPECT_THAT(first.sources().numeric, testing::UnorderedElementsAreArray(whole[0]));
}

TEST_F(EpochStepsTest, RefusedRowsCountWithTheStepBehindThem) {
  const Job lenient = SmallJob({"train.batch_size=10", "data.max_bad_rows=5"});
  EXPECT_TRUE(WriteFileAtomically(*files_, "train.csv", "1,0,k\nno row\n0,1,k\n").ok());
  EpochSteps steps(lenient, *files_, servers_.channel(), *clock_, *executor_);
  ASSERT_TRUE(steps.Open(lenient, {}, {}).ok());
  const Status filled = steps.window().Fill(1, 1);
  ASSERT_TRUE(filled.ok()) << filled.message();
  EXPECT_EQ(steps.bad_rows(), 0u);
  steps.Pop();
  EXPECT_EQ(steps.bad_rows(), 1u);
  ASSERT_TRUE(steps.Open(lenient, {}, {}).ok());
  EXPECT_EQ(steps.bad_rows(), 0u);
}

}  // namespace
}  // namespace hdps
