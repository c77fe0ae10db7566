// Tests a whole scheduler whose workers have programs of their own as the model.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "common/job/job_file.h"
#include "common/protocol/manifest.h"
#include "common/protocol/message_frames.h"
#include "common/protocol/status_messages.h"
#include "tests/scheduler/scheduler_node_fixture.h"

namespace hdps {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr const char* kTables = R"({
  "name": "outside",
  "model": {"type": "tables", "tables": [{"name": "t", "dim": 4}]},
  "checkpoint": {"keep_best": false},
  "cluster": {"shards": 4, "heartbeat_ms": 100, "dead_after_ms": 1000, "rendezvous_timeout_s": 30}
})";

class TablesRunTest : public SchedulerNodeTest {
 protected:
  TablesRunTest() {
    options_.steps_per_epoch = Clock{1} << 40;  // The job knows no epochs.
    Set({});
  }
  void Set(const std::vector<std::string>& overrides) {
    Result<Job> job = ParseJob(kTables, "job.json", overrides);
    ASSERT_TRUE(job.ok()) << job.status().message();
    options_.job = *job;
  }
  void StartUntil(Clock a, Clock b) {
    Start();
    cluster_->member("worker a").finishes_at = a;
    cluster_->member("worker b").finishes_at = b;
  }
  Clock Saved() { return FindCheckpoint(*files_, "out/checkpoint")->manifest.clock; }
  size_t CountOf(const std::string& part) const {
    size_t count = 0;
    const std::string text = cluster_->transcript();
    for (size_t at = text.find(part); at != text.npos; at = text.find(part, at + 1)) ++count;
    return count;
  }
};

TEST_F(TablesRunTest, EndsWhenNoProgramHasMoreExamples) {
  StartUntil(7, 23);
  ExpectDone();
  EXPECT_GE(Saved(), 23) << "the job ended with the first program";
  EXPECT_EQ(CountOf("evaluate"), 0u);
  EXPECT_THAT(cluster_->transcript(), HasSubstr("worker a: store dense\nworker b: store dense\n"
                                                "server a: digest\nserver a: save"));
  EXPECT_THAT(cluster_->summary(),
              AllOf(HasSubstr("\"stopped_at\": null"), HasSubstr("\"train_logloss\": null"),
                    HasSubstr("\"steps\": " + std::to_string(Saved()))));
  EXPECT_TRUE(cluster_->Noticed("Done."));

  const Clock before = Saved();  // Programs that begin again may have more examples.
  StartUntil(before + 30, before + 10);
  ExpectDone();
  EXPECT_GE(Saved(), before + 30);
  EXPECT_THAT(cluster_->transcript(), HasSubstr("worker a: train, epoch 0 from "));
  EXPECT_THAT(cluster_->summary(), HasSubstr("\"resumed_from\": " + std::to_string(before)));
}

TEST_F(TablesRunTest, EndsAtMaxStepsToo) {
  Set({"train.max_steps=20"});
  Start();
  ExpectDone();
  EXPECT_EQ(Saved(), 20);
}

TEST_F(TablesRunTest, ProgramsWithoutAnExampleEndTheJobWell) {
  StartUntil(0, 0);
  ExpectDone();
  EXPECT_THAT(cluster_->summary(), HasSubstr("\"stopped_at\": null"));
}

TEST_F(TablesRunTest, ACheckpointThatIsAskedForIsTakenOnceAtOneClock) {
  StartUntil(90, 90);
  cluster_->member("worker b").wants_checkpoint = 30;
  ASSERT_TRUE(cluster_->RunUntil([&] {
    return files_->Exists("out/checkpoint/step_0000000030") || CountOf("server a: save") > 0;
  }));
  ExpectDone();
  EXPECT_EQ(CountOf("server a: save"), 2u) << cluster_->transcript();
  EXPECT_EQ(CountOf("worker a: store dense"), 2u);
  EXPECT_EQ(CountOf("worker b: store dense"), 2u);
  const std::string text = cluster_->transcript();
  const std::string mark = "server a: save out/checkpoint/step_";
  const Clock taken = std::stoll(text.substr(text.find(mark) + mark.size(), 10));
  EXPECT_GE(taken, 30);
  EXPECT_LT(taken, 60) << "it is not due at the end only";
  const size_t stored = text.find("worker b: store dense");
  EXPECT_LT(stored, text.find(mark)) << "the states belong to the clock of the rows";
}

TEST_F(TablesRunTest, OfAnotherJobAWorkersWordEndsAndSavesNothing) {
  options_.job = ScriptedJob();
  options_.steps_per_epoch = 10;
  StartUntil(0, 0);
  cluster_->member("worker a").wants_checkpoint = 3;
  ExpectDone();
  EXPECT_THAT(cluster_->summary(), HasSubstr("\"steps\": 20"));
  EXPECT_EQ(CountOf("server a: save"), 1u);
}

class TablesFiguresTest : public TablesRunTest {
 protected:
  // Worker 0 reports these values of recall@20 by clock, and worker 1 others, which do not count.
  void StartReporting(const std::map<Clock, double>& recalls) {
    StartUntil(1000, 1000);
    cluster_->answer = [recalls](ScriptedMember& member,
                                 const Command& command) -> std::optional<CommandDone> {
      if (command.command != CommandKind::kEvaluate) return std::nullopt;
      CommandDone done;
      done.clock = member.clock;
      if (member.client.rank() == 1) {
        done.figures = {{"recall@20", 1}};
      } else if (recalls.contains(member.clock)) {
        done.figures = {{"recall@20", recalls.at(member.clock)}, {"auc", 0.5}};
      }
      return done;
    };
  }
};

TEST_F(TablesFiguresTest, TheFirstDecidesWhereTheJobNamesNone) {
  Set({"train.eval_every_steps=10", "train.early_stop.patience=2", "checkpoint.keep_best=true",
       "checkpoint.keep=1"});
  StartReporting({{10, 0.25}, {20, 0.5}, {30, 0.375}, {40, 0.5}});
  ExpectDone();
  EXPECT_THAT(cluster_->summary(),
              AllOf(HasSubstr("\"steps\": 40"), HasSubstr("\"best_step\": 20"),
                    HasSubstr("\"best_metric\": \"recall@20\""), HasSubstr("\"best_value\": 0.5"),
                    HasSubstr("\"best_checkpoint\": \"out/checkpoint/step_0000000020\""),
                    HasSubstr("\"stopped_early\": \"recall@20 was no better than 0.500000, that of "
                              "step 20, in 2 evaluations\""),
                    HasSubstr("\"recall@20\": 0.5,\n    \"auc\": 0.5")));
  EXPECT_TRUE(cluster_->Noticed("step 10: recall@20 0.250000, AUC 0.500000"));
  EXPECT_EQ(OpenCheckpoint(*files_, "out", WhichCheckpoint::kBest)->manifest.clock, 20);
  const Result<std::string> metrics = ReadWholeFile(*files_, "out/metrics.jsonl", 1 << 20);
  ASSERT_TRUE(metrics.ok());
  EXPECT_THAT(*metrics, HasSubstr("\"eval_metrics\":{\"recall@20\":0.25,\"auc\":0.5}"));

  StartReporting({});  // What it knows of the figures stands in the checkpoint.
  ExpectDone();
  EXPECT_TRUE(cluster_->Noticed("nothing left to train, for recall@20 was no better"));
}

TEST_F(TablesFiguresTest, OneThatIsNotReportedIsNamedWithThoseThatAre) {
  Set({"train.eval_every_steps=10", "train.plateau.patience=1", "train.plateau.metric=recall",
       "train.max_steps=30"});
  StartReporting({{10, 0.25}, {20, 0.5}});
  ExpectDone();
  EXPECT_TRUE(
      cluster_->Noticed("train.plateau.metric: the program of worker 0 reports no figure "
                        "\"recall\"; there are recall@20, auc"));
  EXPECT_TRUE(cluster_->Noticed("has reported no figure when an evaluation was due"));
}

TEST_F(TablesRunTest, WhoeverAsksGetsTheJob) {
  Set({"train.eval_every_steps=7", R"(train.schedule={"kind": "cosine", "decay_steps": 80})"});
  options_.guests_read = true;
  Start();
  Frame frame = EncodeMessage(JobRequest());
  frame.header.request_id = 78;
  node().OnFrame({4711}, frame);
  int replies = 0;
  for (const Outgoing& out : node().TakeOutput().frames) {
    if (out.to != PeerId{4711}) continue;
    EXPECT_EQ(out.frame.header.request_id, 78u);
    JobReply reply;
    ASSERT_TRUE(DecodeMessage(out.frame, &reply).ok());
    const std::string text(reinterpret_cast<const char*>(reply.text.data()), reply.text.size());
    const Result<Job> job = ParseJob(text, "reply", {});
    ASSERT_TRUE(job.ok()) << job.status().message();
    EXPECT_EQ(JobDigest(*job), JobDigest(options_.job));
    EXPECT_THAT(text, HasSubstr("\"outside\""));
    ++replies;
  }
  EXPECT_EQ(replies, 1);
}

}  // namespace
}  // namespace hdps
