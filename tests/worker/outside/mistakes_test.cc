// Tests the refusal of what a caller of a table worker does wrong.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <vector>

#include "tests/worker/outside/table_job.h"

namespace hdps {
namespace {

using testing::HasSubstr;

class MistakesTest : public TableJobTest {};

TEST_F(MistakesTest, NameWhatIsWrongAndChangeNothing) {
  const nlohmann::json plain = Summary({1, 1}, {"train.max_steps=2"}, [](TableWorker& worker) {
    PullOne(worker, kWords, {1, 2});
    MakeEmptySteps(worker);
  });
  const nlohmann::json wrong = Summary({1, 1}, {"train.max_steps=2"}, [](TableWorker& worker) {
    const std::vector<Key> keys = {1, 2}, others = {1, 7}, twice = {5, 5};
    const std::vector<float> rows(8, 0.5f), few(7, 0.5f);
    std::vector<float> not_finite = rows;
    not_finite[5] = std::numeric_limits<float>::infinity();
    const auto refused = [](const Status& status, const std::string& why) {
      EXPECT_EQ(status.code(), Code::kInvalidArgument);
      EXPECT_THAT(status.message(), HasSubstr(why));
    };
    const auto pull = [&](std::vector<AskedKeys> asked) {
      return worker.Pull(asked, PullFor::kStep).status();
    };
    refused(pull({{TableId{3}, keys}}),
            "no table number 3; the tables of the job are words, users");
    refused(pull({{TableId{2}, keys}}), "no table number 2");  // The states of workers.
    refused(pull({{kWords, keys}, {kUsers, keys}, {kWords, others}}), "'words' is asked for twice");
    refused(worker.Prefetch(std::vector<AskedKeys>{{TableId{9}, keys}}), "no table number 9");
    refused(worker.Push(kWords, keys, rows), "key 1 of table 'words' was not pulled");
    const PulledRows looked = PullOne(worker, kWords, keys, PullFor::kLook);
    refused(worker.Push(looked, rows), "for looking alone");
    const PulledRows pulled = PullOne(worker, kWords, keys);
    refused(worker.Push(pulled, few), "7 floats; 2 keys of 4 floats are 8");
    refused(worker.Push(kWords, keys, few), "7 floats; 2 keys of 4 floats are 8");
    refused(worker.Push(kWords, others, rows), "key 7 of table 'words' was not pulled");
    refused(worker.Push(kUsers, keys, std::span(rows).first(4)), "was not pulled in this step");
    refused(worker.Push(TableId{7}, keys, rows), "no table number 7");
    refused(worker.Push(pulled, not_finite), "is inf, for key " + std::to_string(pulled.keys[1]));
    refused(worker.Push(kWords, keys, not_finite), "for key 2 at column 1");
    refused(worker.Store(kWords, twice, rows), "key 5 of table 'words' stands twice");
    refused(worker.Store(kWords, keys, few), "7 floats; 2 keys of 4 floats are 8");
    refused(worker.Store(kWords, keys, not_finite), "not finite");
    refused(worker.Report({{"auc", 0.5}}), "no evaluation is due at step 0");
    ASSERT_TRUE(worker.Push(pulled, rows).ok());
    refused(worker.Advance(0), "gradients and 0 examples");
    worker.GiveUpStep();
    ASSERT_TRUE(worker.Advance(0).ok());
    refused(worker.Push(pulled, rows), "were pulled in step 0, which is over");
    MakeEmptySteps(worker);
    EXPECT_EQ(worker.Advance(1).code(), Code::kCancelled);
    EXPECT_EQ(pull({{kWords, keys}}).code(), Code::kCancelled);
  });
  EXPECT_EQ(wrong["digest"], plain["digest"]);
}

TEST_F(MistakesTest, OfFiguresAreTold) {
  Summary({1, 1}, {"train.max_steps=2", "train.eval_every_steps=1"}, [](TableWorker& worker) {
    ASSERT_TRUE(worker.Advance(0).ok());
    ASSERT_TRUE(worker.evaluation_due());
    EXPECT_THAT(worker.Report({{"1st", 1}}).message(), HasSubstr("'1st' cannot name a figure"));
    EXPECT_THAT(worker.Report({{"auc", std::numeric_limits<double>::quiet_NaN()}}).message(),
                HasSubstr("figure 'auc' is nan"));
    EXPECT_THAT(worker.Report(OutsideFigures(65, {"auc", 1})).message(), HasSubstr("at most 64"));
    ASSERT_TRUE(worker.Report({{"auc", 0.5}}).ok());
    EXPECT_EQ(worker.Advance(0).code(), Code::kOk);
    ASSERT_TRUE(worker.evaluation_due());
    EXPECT_EQ(worker.Report({}).code(), Code::kCancelled);
    EXPECT_EQ(worker.standing(), Standing::kEnded);
  });
}

}  // namespace
}  // namespace hdps
