// Tests the pictures that a whole scheduler makes of its job, from its start to its end.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

#include "common/job/spec/checkpoint_spec.h"
#include "common/protocol/message_frames.h"
#include "common/protocol/status_messages.h"
#include "scheduler/picture/panels.h"
#include "scheduler/picture/picture_paths.h"
#include "scheduler/why/explanation.h"
#include "tests/scheduler/scheduler_node_fixture.h"

namespace hdps {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

class JobWatchTest : public SchedulerNodeTest {
 protected:
  JobWatchTest() { options_.pictures = std::make_shared<Published<JobPicture>>(); }

  std::shared_ptr<const JobPicture> Picture() { return options_.pictures->Get(); }
  json Page() { return json::parse(*PanelJson(*Picture(), "page", 0)); }
  // Asks as a process that is no member.
  PanelReply Ask(const std::string& panel) {
    Frame frame = EncodeMessage(PanelRequest{.panel = panel});
    frame.header.request_id = 5;
    cluster_->node->OnFrame({4711}, frame);
    PanelReply reply;
    for (const Outgoing& out : cluster_->node->TakeOutput().frames) {
      if (out.to != PeerId{4711}) continue;
      EXPECT_TRUE(DecodeMessage(out.frame, &reply).ok());
    }
    return reply;
  }
  json FiguresFile() {
    const Result<std::string> text = ReadWholeFile(*files_, "out/figures.json", 1 << 24);
    EXPECT_TRUE(text.ok()) << text.status().message();
    return text.ok() ? json::parse(*text) : json();
  }
};

TEST_F(JobWatchTest, TheLastPictureAgreesWithTheSummary) {
  options_.job.checkpoint.every_steps = 5;
  Start();
  ExpectDone();
  const json summary = json::parse(cluster_->summary());
  json page = Page();
  EXPECT_EQ(page["training"]["step"], summary["steps"]);
  EXPECT_EQ(page["training"]["examples"], summary["examples"]);
  EXPECT_EQ(page["health"]["state"], "ended");
  EXPECT_EQ(page["health"]["sentence"], "the job is finished");
  ASSERT_FALSE(page["training"]["evaluations"].empty());
  for (const json& one : page["training"]["evaluations"]) {
    EXPECT_EQ(one["value"], summary["eval_metrics"][one["metric"].get<std::string>()]);
  }
  const json& newest = page["checkpoints"]["newest"].back();
  EXPECT_EQ(newest["path"], summary["checkpoint"]);
  EXPECT_EQ(newest["verified"], false);
  EXPECT_TRUE(newest["seconds"].is_number());
  EXPECT_GT(page["checkpoints"]["newest"].size(), 2u);
  const json figures = json::parse(*PanelJson(*Picture(), "figures", 0));
  const json& own = figures["scheduler"]["figures"];
  EXPECT_EQ(own["hdps_step"], summary["steps"]);
  EXPECT_EQ(own["hdps_losses_survived_total"], summary["failures_survived"]);
  EXPECT_EQ(own["hdps_checkpoint_step"], summary["steps"]);
  // OUT/figures.json is the same document.
  json file = FiguresFile();
  EXPECT_EQ(file["training"], page["training"]);
  EXPECT_EQ(file["figures"]["scheduler"]["figures"], own);
}

TEST_F(JobWatchTest, AMessageGetsWhatThePageGets) {
  options_.steps_per_epoch = 1000;
  Start();
  EXPECT_TRUE(cluster_->RunUntil([&] { return Picture() && Picture()->progress.clock >= 10; }));
  for (const std::string_view panel : PanelNames()) {
    const PanelReply reply = Ask(std::string(panel));
    const std::span<const char> text = reply.text.As<char>();
    EXPECT_EQ(json::parse(text.begin(), text.end()), json::parse(*PanelJson(*Picture(), panel, 0)));
  }
  const PanelReply refused = Ask("no_such");
  EXPECT_EQ(refused.code, Code::kNotFound);
  EXPECT_THAT(refused.message, HasSubstr("health training"));
}

// Nobody looks: a picture is made for the file alone, at the start and every 30 s.
TEST_F(JobWatchTest, AnUnwatchedJobLeavesAFile) {
  options_.pictures = nullptr;
  options_.steps_per_epoch = 100'000;
  Start();
  cluster_->RunUntil([] { return false; }, 29'000);
  EXPECT_EQ(FiguresFile()["training"]["step"], 0);
  cluster_->RunUntil([] { return false; }, 2'000);
  const int64_t step = FiguresFile()["training"]["step"];
  EXPECT_GT(step, 0);
  cluster_->RunUntil([] { return false; }, 30'000);
  EXPECT_GT(FiguresFile()["training"]["step"], step);
  node().Fail(3, "the disk is gone");
  EXPECT_EQ(FiguresFile()["health"]["sentence"], "the disk is gone");
  EXPECT_EQ(FiguresFile()["health"]["state"], "failed");
}

TEST_F(JobWatchTest, ALossIsToldWithItsCause) {
  options_.steps_per_epoch = 100'000;
  options_.job.checkpoint.every_steps = 50;
  Start();
  EXPECT_TRUE(cluster_->RunUntil([&] { return Picture() && Picture()->progress.clock >= 60; }));
  const uint64_t version = Picture()->version;
  cluster_->member("worker b").cut_off = true;
  EXPECT_TRUE(cluster_->RunUntil([&] { return Page()["health"]["kind"] == "lost"; }));
  EXPECT_THAT(Page()["health"]["sentence"].get<std::string>(), HasSubstr("worker 1 (worker b)"));
  EXPECT_EQ(Page()["health"]["members"]["workers"], json::parse(R"({"alive": 1, "expected": 2})"));
  const json events = json::parse(*PanelJson(*Picture(), "events", version))["events"];
  ASSERT_FALSE(events.empty());
  EXPECT_EQ(events[0]["text"], "worker 1 (worker b) was lost");
  EXPECT_EQ(events[0]["kind"], "warning");
  EXPECT_THAT(events[0]["cause"].get<std::string>(), HasSubstr("nothing was heard of it"));
  cluster_->Add(Role::kWorker, "worker c");
  const auto back = [&] {
    const json all = Page()["events"]["events"];
    for (const json& event : all) {
      if (event["seconds"].is_number() && event["cause"] == events[0]["cause"]) return true;
    }
    return false;
  };
  EXPECT_TRUE(cluster_->RunUntil(back));
  EXPECT_EQ(Page()["health"]["members"]["workers"], json::parse(R"({"alive": 2, "expected": 2})"));
}

TEST_F(JobWatchTest, CurvesGoOnOverARestartOfTheScheduler) {
  options_.steps_per_epoch = 100'000;
  options_.job.checkpoint.every_steps = 50;
  Start();
  const auto points = [&] { return Page()["training"]["curves"][0]["points"]; };
  EXPECT_TRUE(cluster_->RunUntil([&] { return Picture() && points().size() >= 5; }));
  const json before = points();
  const uint64_t version = Picture()->version;
  cluster_->StartScheduler();
  EXPECT_TRUE(cluster_->RunUntil(
      [&] { return Picture()->version > version && points().size() > before.size() + 2; }));
  const json after = points();
  for (size_t i = 0; i < before.size(); ++i) EXPECT_EQ(after[i], before[i]);
  // A reader of the former process gets everything anew.
  EXPECT_TRUE(json::parse(*PanelJson(*Picture(), "page", version)).contains("configuration"));
}

HttpAnswer Get(const std::vector<HttpPath>& paths, const std::string& path) {
  for (const HttpPath& one : paths) {
    if (one.path == path) return one.answer({path, [](std::string_view) { return std::string(); }});
  }
  ADD_FAILURE() << "no path " << path;
  return {};
}

class SetClock : public MonotonicClock {
 public:
  int64_t NowMs() override { return now; }
  int64_t NowNs() override { return now * 1'000'000; }
  int64_t now = 0;
};

TEST_F(JobWatchTest, ProbesTellWhetherTheLoopTurnsAndAllAreHere) {
  SetClock clock;
  const std::vector<HttpPath> paths = PicturePaths(options_.pictures, clock, MembersHere::kAll);
  EXPECT_EQ(Get(paths, "/healthz").status, 503);
  options_.steps_per_epoch = 100'000;
  options_.num_workers = 2;
  Start();
  cluster_->member("worker b").cut_off = true;
  cluster_->RunUntil([] { return false; }, 500);
  clock.now = cluster_->now;
  EXPECT_EQ(Get(paths, "/healthz").status, 200);
  EXPECT_EQ(Get(paths, "/readyz").status, 503);
  EXPECT_THAT(*Get(paths, "/readyz").body, HasSubstr("1 of 2 workers"));
  cluster_->member("worker b").cut_off = false;
  EXPECT_TRUE(cluster_->RunUntil([&] { return Picture()->progress.clock > 0; }));
  EXPECT_EQ(Get(paths, "/readyz").status, 200);
  EXPECT_THAT(*Get(paths, "/metrics").body,
              HasSubstr("\nhdps_members{role=\"worker\",state=\"alive\"} 2"));
  // Two heartbeats of 100 ms, and one millisecond.
  clock.now = Picture()->made_at + 200;
  EXPECT_EQ(Get(paths, "/healthz").status, 200);
  clock.now += 1;
  EXPECT_EQ(Get(paths, "/healthz").status, 503);
}

}  // namespace
}  // namespace hdps
