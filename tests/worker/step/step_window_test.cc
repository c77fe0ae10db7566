// Tests steps in order, the memory of finished ones, and the end of the epoch.
#include "worker/step/step_window.h"

#include <gtest/gtest.h>

#include <vector>

#include "tests/worker/step/step_fixture.h"

namespace hdps {
namespace {

class StepWindowTest : public StepTest {
 protected:
  // Returns the number of the step in the file, from its first row.
  static int NumberOf(const WindowStep& step) {
    return static_cast<int>(step.prepared->parts.parts()[0].batch.first_row) / kRowsOfStep;
  }
};

TEST_F(StepWindowTest, HoldsNeighbouringStepsInOrder) {
  StepWindow& window = Read(65);
  ASSERT_TRUE(window.Fill(2, 2).ok());
  ASSERT_EQ(window.size(), 2u);
  int first = 0;
  for (; window.size() > 0; ++first) {
    for (size_t i = 0; i < window.size(); ++i) {
      EXPECT_EQ(NumberOf(window.at(i)), first + static_cast<int>(i));
      EXPECT_FALSE(window.at(i).rows->requested());
    }
    window.Pop();
    ASSERT_TRUE(window.Fill(2, 2).ok());
    EXPECT_LE(window.size(), 2u);
  }
  EXPECT_EQ(first, 7) << "the last has 5 rows";
}

TEST_F(StepWindowTest, DoesNotWaitForMoreThanIsNeeded) {
  StepWindow& window = Read(30);
  ASSERT_TRUE(window.Fill(3, 1).ok());
  EXPECT_GE(window.size(), 1u);
  // It could not tell the end from a late reader: what was missing is found later.
  ASSERT_TRUE(window.Fill(9, 3).ok());
  EXPECT_EQ(window.size(), 3u);
  ASSERT_TRUE(window.Fill(9, 9).ok());
  EXPECT_EQ(window.size(), 3u) << "the epoch has no more";
}

TEST_F(StepWindowTest, AStepHasTheMemoryOfTheRowsThatHaveLeft) {
  StepWindow& window = Read(20);
  ASSERT_TRUE(window.Fill(1, 1).ok());
  RowGather& first = *window.at(0).rows;
  EXPECT_EQ(first.rows()[0].capacity(), 0u);
  first.RequestRows(*window.at(0).prepared, {.clock = 0, .list = 1});
  std::vector<float> dense(model_->dense_floats());
  ASSERT_TRUE(first.Take(dense).ok());
  const float* const memory = first.rows()[0].data();
  window.Pop();
  ASSERT_TRUE(window.Fill(1, 1).ok());
  EXPECT_GT(window.at(0).rows->rows()[0].capacity(), 0u);
  EXPECT_EQ(window.at(0).rows->rows()[0].data(), memory);
}

TEST_F(StepWindowTest, ForgetsWhatWasAskedForAndKeepsTheSteps) {
  StepWindow& window = Read(20);
  ASSERT_TRUE(window.Fill(2, 2).ok());
  for (const size_t i : {0, 1}) {
    const RowTerms terms = {.clock = static_cast<Clock>(i), .list = i + 1};
    window.at(i).rows->RequestRows(*window.at(i).prepared, terms);
    EXPECT_TRUE(window.at(i).rows->requested());
  }
  window.CancelRequests();
  ASSERT_EQ(window.size(), 2u);
  for (const size_t i : {0, 1}) {
    EXPECT_FALSE(window.at(i).rows->requested());
    EXPECT_EQ(NumberOf(window.at(i)), static_cast<int>(i));
  }
}

TEST_F(StepWindowTest, AMistakeInTheDataComesBehindTheStepsBeforeIt) {
  StepWindow& window = Read(20, "1,no number,k1\n");
  ASSERT_TRUE(window.Fill(2, 2).ok());
  EXPECT_EQ(window.size(), 2u);
  const Status status = window.Fill(3, 3);
  EXPECT_EQ(status.code(), Code::kInvalidArgument);
  EXPECT_NE(status.message().find("train.csv:21:"), std::string::npos) << status.message();
}

}  // namespace
}  // namespace hdps
