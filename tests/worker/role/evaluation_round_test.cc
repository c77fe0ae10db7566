// Tests a worker's part of an evaluation in pieces: each example once, with the servers' rows.
#include "worker/role/evaluation_round.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "common/protocol/row_messages.h"
#include "tests/worker/step/step_fixture.h"

namespace hdps {
namespace {

class EvaluationRoundTest : public StepTest {
 protected:
  static constexpr uint64_t kRows = 9000;  // Three steps of scoring.

  EvaluationRoundTest() : StepTest({"data.eval=[\"eval.csv\"]"}) {
    std::string text;
    for (uint64_t i = 0; i < kRows; ++i) {
      text += std::to_string(i % 3 == 0) + "," + std::to_string(i % 5) + ",k\n";
    }
    EXPECT_TRUE(WriteFileAtomically(*files_, "eval.csv", text).ok());
    model_->SetDense(model_->InitialDense(1));
  }
  std::unique_ptr<EvaluationRound> Begin() {
    PipelineOptions reading = EvaluationOptions(job_, *FindEvalSet(job_, ""), 0, 1);
    reading.plan.view = servers_.view();
    Result<std::unique_ptr<EvaluationRound>> round =
        EvaluationRound::Begin(job_, *model_, 7, servers_.channel(), *clock_, *files_, reading);
    EXPECT_TRUE(round.ok()) << round.status().message();
    return *std::move(round);
  }
};

TEST_F(EvaluationRoundTest, FindsASetByItsNameAndTheFirstWithoutOne) {
  EXPECT_EQ(FindEvalSet(job_, "")->name, kEvalName);
  EXPECT_EQ(FindEvalSet(job_, kEvalName)->files, std::vector<std::string>{"eval.csv"});
  const Result<EvalSet> none = FindEvalSet(job_, "tuesday");
  ASSERT_FALSE(none.ok());
  EXPECT_EQ(none.status().message(), "this job has no evaluation set 'tuesday'");
}

TEST_F(EvaluationRoundTest, PiecesAreTheWholeWhateverTheirSize) {
  CommandDone whole;
  ASSERT_TRUE(Begin()->Next(kRows, &whole).ok());
  EXPECT_EQ(whole.examples, kRows);
  EXPECT_FALSE(whole.more);
  EXPECT_EQ(whole.label_tally.count, kRows);
  for (const size_t piece : {1, 5000}) {
    const std::unique_ptr<EvaluationRound> round = Begin();
    std::vector<float> scores, labels;
    uint64_t examples = 0;
    double loss_sum = 0;
    for (bool more = true; more;) {
      CommandDone done;
      ASSERT_TRUE(round->Next(piece, &done).ok());
      EXPECT_EQ(done.more, !round->at_end());
      EXPECT_TRUE(done.examples >= piece || !done.more);
      const std::span<const float> s = done.scores.As<float>(), l = done.labels.As<float>();
      scores.insert(scores.end(), s.begin(), s.end());
      labels.insert(labels.end(), l.begin(), l.end());
      EXPECT_EQ(s.size(), done.examples);
      examples += done.examples;
      loss_sum += done.loss_sum;
      more = done.more;
      ASSERT_LE(examples, kRows);
    }
    EXPECT_EQ(examples, kRows);
    EXPECT_NEAR(loss_sum, whole.loss_sum, 1e-9 * whole.loss_sum);
    EXPECT_TRUE(std::ranges::equal(scores, whole.scores.As<float>()));
    EXPECT_TRUE(std::ranges::equal(labels, whole.labels.As<float>()));
  }
}

TEST_F(EvaluationRoundTest, RowsAreReadAtItsClockWithoutBeingMade) {
  CommandDone done;
  ASSERT_TRUE(Begin()->Next(1, &done).ok());
  const std::vector<std::string> log = servers_.log();
  ASSERT_FALSE(log.empty());
  for (const std::string& request : log) EXPECT_EQ(request, "pull 7");
  EXPECT_EQ(log.size(), 2u) << "the rows of the step behind are on their way";
  for (const auto& [row, mode] : servers_.pulled) EXPECT_EQ(mode, PullMode::kRead);
}

}  // namespace
}  // namespace hdps
