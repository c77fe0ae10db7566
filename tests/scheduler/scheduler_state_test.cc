// Tests that the state a scheduler leaves on disk is read by another, unless it contradicts itself.
#include "scheduler/scheduler_state.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "common/job/spec/checkpoint_spec.h"
#include "common/job/spec/cluster_spec.h"
#include "scheduler/state_log.h"
#include "tests/scheduler/scheduler_node_fixture.h"

namespace hdps {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class SchedulerStateTest : public SchedulerNodeTest {
 protected:
  SchedulerStateTest() {
    options_.num_servers = 2;
    options_.job.cluster.replicas = 1;
    options_.job.checkpoint.every_steps = 4;
  }
  std::string TextOf(const std::string& out) {
    const std::string all = *ReadWholeFile(*files_, SchedulerStatePath(out), uint64_t{2} << 20);
    return std::string(NewestState(all));
  }
  // Returns the state on disk while all workers train.
  SchedulerState Training() {
    Start();
    EXPECT_TRUE(cluster_->RunUntil([&] { return cluster_->member("worker b").clock >= 6; }));
    const auto state = ReadSchedulerState(*files_, "out");
    EXPECT_TRUE(state.ok() && state->has_value()) << state.status().message();
    return state.ok() && *state ? **state : SchedulerState();
  }
  Status Read(const SchedulerState& state) {
    EXPECT_TRUE(files_->MakeDirectories("changed").ok());
    EXPECT_TRUE(WriteSchedulerState(*files_, "changed", state).ok());
    return ReadSchedulerState(*files_, "changed").status();
  }
};

// At every turn of a whole job, with its pauses for copies, evaluations and checkpoints.
TEST_F(SchedulerStateTest, WhatASchedulerWritesIsReadAndWrittenAgainAsTheSame) {
  Start();
  ASSERT_TRUE(files_->MakeDirectories("again").ok());
  std::set<JobPhase> phases;
  bool lost = false;
  ASSERT_TRUE(cluster_->RunUntil([&] {
    if (!lost && cluster_->member("worker b").clock >= 6) {
      lost = cluster_->member("server b").cut_off = true;
      cluster_->Add(Role::kServer, "server c");
    }
    const auto state = ReadSchedulerState(*files_, "out");
    EXPECT_TRUE(state.ok()) << state.status().message();
    if (!state.ok() || !*state) return node().done();
    phases.insert((*state)->job.phase);
    EXPECT_TRUE(WriteSchedulerState(*files_, "again", **state).ok());
    EXPECT_EQ(TextOf("again"), TextOf("out"));
    return node().done();
  })) << cluster_->transcript();
  EXPECT_EQ(node().exit_status(), 0) << node().exit_reason();
  std::printf("figure: scheduler.state: read in %zu of its phases\n", phases.size());
  EXPECT_GE(phases.size(), 8u);
}

// The losses of a diverging model are NaN, and its scheduler still recovers.
TEST_F(SchedulerStateTest, LossesNeedNotBeNumbers) {
  SchedulerState state = Training();
  state.job.trained.loss_sum = std::nan("");
  ASSERT_TRUE(Read(state).ok()) << Read(state).message();
  EXPECT_TRUE(std::isnan((*ReadSchedulerState(*files_, "changed"))->job.trained.loss_sum));
}

struct Contradiction {
  const char* what;  // Part of the message.
  std::function<void(SchedulerState&)> make;
};

TEST_F(SchedulerStateTest, EachContradictionOfMembersIsNamed) {
  const SchedulerState whole = Training();
  ASSERT_EQ(whole.view.servers.size(), 2u);
  ASSERT_EQ(whole.view.workers.size(), 2u);
  ASSERT_EQ(whole.view.backups.size(), 2u);
  const std::vector<Contradiction> all = {
      {"without servers", [](auto& s) { s.view.workers.clear(); }},
      {"ranks are 0..n-1", [](auto& s) { s.view.workers[1].rank = 2; }},
      {"has two places", [](auto& s) { s.view.workers[1].peer = s.view.workers[0].peer; }},
      {"has two places", [](auto& s) { s.view.workers[1].peer = s.view.servers[0].peer; }},
      {"ranks of servers are their own",
       [](auto& s) { s.view.backups.clear(), s.view.servers[1].rank = 0; }},
      {"has two ranks", [](auto& s) { s.view.backups[0].member.rank = 2; }},
      {"a rank beyond the servers",
       [](auto& s) { s.view.servers[1].rank = s.view.backups[0].member.rank = 1u << 31; }},
      {"holds group 0 twice", [](auto& s) { s.view.backups[0].member = s.view.servers[0]; }},
      {"in the order of their groups",
       [](auto& s) { std::swap(s.view.backups[0], s.view.backups[1]); }},
      {"in the order of their groups", [](auto& s) { s.view.backups[1].group = {2}; }},
      {"is no member", [](auto& s) { s.view.workers[0].peer = kSchedulerPeer; }},
      {"must say where it listens", [](auto& s) { s.view.servers[0].address.clear(); }},
      {"longer than 272 bytes",
       [](auto& s) { s.view.servers[0].address = "inproc://" + std::string(70000, 'a'); }},
      {"a worker listens nowhere", [](auto& s) { s.view.workers[0].address = "tcp://h:1"; }},
      {"owners of shards are servers", [](auto& s) { s.view.shards.owner[0] = {2}; }},
      {"a power of two", [](auto& s) { s.view.shards.owner.pop_back(); }},
      {"a view of no number", [](auto& s) { s.view.view = {}; }},
      {"a view of no number", [](auto& s) { s.view.view = {~uint64_t{0}}; }},
      {"still to come", [](auto& s) { s.view.placed = {s.view.view.value + 1}; }},
      {"still to come", [](auto& s) { s.view.restarts = 1; }},
      {"no cluster is wanted", [](auto& s) { s.wanted_servers = 2; }},
      {"no cluster is wanted", [](auto& s) { s.wanted_servers = s.wanted_workers = 65537; }},
      {"more commands", [](auto& s) { s.last_ids.begin()->second = ~uint64_t{0}; }},
      {"too long an entry", [](auto& s) { s.entries["k"] = std::string(65537, 'v'); }},
      {"more entries", [](auto& s) {
         for (int i = 0; i <= 1 << 16; ++i) s.entries[std::to_string(i)] = "";
       }}};
  for (const auto& [what, make] : all) {
    SchedulerState state = whole;
    make(state);
    const Status status = Read(state);
    ASSERT_EQ(status.code(), Code::kCorruption) << what;
    EXPECT_THAT(
        status.message(),
        AllOf(HasSubstr("changed/scheduler.state: its parts do not fit: "), HasSubstr(what)));
  }
}

TEST_F(SchedulerStateTest, EachContradictionOfTheJobIsNamed) {
  const SchedulerState whole = Training();
  ASSERT_EQ(whole.job.phase, JobPhase::kTrain);
  ASSERT_EQ(whole.job.orders.size(), 2u);
  const std::vector<Contradiction> all = {
      {"an epoch that began at step 5 and is at step 4",
       [](auto& s) { s.job.plan.position.epoch_start = 5; }},
      {"and is at step -1", [](auto& s) { s.job.plan.position.clock = -1; }},
      {"and is at step 9223372036854775807",
       [](auto& s) { s.job.plan.position.clock = 0x7fffffffffffffff; }},
      {"a step that is to come", [](auto& s) { s.job.plan.saved = 5; }},
      {"a step that cannot have been", [](auto& s) { s.job.reached = -1; }},
      {"a step that cannot have been", [](auto& s) { s.job.reached = 0x7fffffffffffffff; }},
      {"out of order", [](auto& s) { s.job.plan.due = {JobStep::kTrain}; }},
      {"out of order",
       [](auto& s) {
         s.job.plan.due = {JobStep::kSave, JobStep::kSave};
       }},
      {"out of order",
       [](auto& s) {
         s.job.plan.due = {JobStep::kSave, JobStep::kEvaluate};
       }},
      {"an end that is not due", [](auto& s) { s.job.plan.due = {JobStep::kFinish}; }},
      {"an end that is not due", [](auto& s) { s.job.plan.ending = true; }},
      {"an end that is not due", [](auto& s) { s.job.plan.stopped_early = true; }},
      {"a phase that is not due", [](auto& s) { s.job.plan.due = {JobStep::kSave}; }},
      {"a phase that is not due", [](auto& s) { s.job.phase = JobPhase::kSave; }},
      {"orders, and no training", [](auto& s) { s.job.phase = JobPhase::kQuiet; }},
      {"no worker of the view", [](auto& s) { s.job.orders[0].worker = {4711}; }},
      {"no worker of the view", [](auto& s) { s.job.orders[0].worker = s.view.servers[0].peer; }},
      {"was not given yet", [](auto& s) { ++s.job.orders[0].command.id.value; }},
      {"was not given yet", [](auto& s) { s.last_ids.clear(); }},
      {"commands are numbered from 1", [](auto& s) { s.job.orders[0].command.id = {}; }},
      {"stands twice", [](auto& s) { s.job.orders.push_back(s.job.orders[0]); }},
      {"is of another step", [](auto& s) { s.job.orders[1].command.until = 4; }},
      {"is of another step", [](auto& s) { s.job.orders[1].command.epoch = 1; }},
      {"is of another step", [](auto& s) { s.job.orders[1].command.epoch_start = 1; }},
      {"learning rates stay or fall", [](auto& s) { s.job.orders[1].command.rate = 2; }},
      {"cannot have been", [](auto& s) { s.job.wall_ms = -1; }},
      {"cannot have been", [](auto& s) { s.job.training_ms = 0x7fffffffffffffff; }},
      {"cannot have been", [](auto& s) { s.job.epoch_rows = ~uint64_t{0}; }},
      {"cannot have been", [](auto& s) { s.job.summary.resumed_from = -2; }}};
  for (const auto& [what, make] : all) {
    SchedulerState state = whole;
    make(state);
    const Status status = Read(state);
    ASSERT_EQ(status.code(), Code::kCorruption) << what;
    EXPECT_THAT(status.message(), HasSubstr(what));
  }
}

// JSON that is not a valid state: numbers of other kinds and ranges, other names.
TEST_F(SchedulerStateTest, NumbersThatAFieldCannotHoldAreRefused) {
  Training();
  const std::string text = TextOf("out");
  const auto with = [&](const std::string& from, const std::string& to) {
    const size_t at = text.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    return text.substr(0, at) + to + text.substr(at + from.size());
  };
  for (const std::string& changed : {with("\"num_workers\": 2", "\"num_workers\": 4294967298"),
                                     with("\"num_workers\": 2", "\"num_workers\": 2.0"),
                                     with("\"num_workers\": 2", "\"num_workers\": \"2\""),
                                     with("\"restarts\": 0", "\"restarts\": -4294967296"),
                                     with("\"version\": 1", "\"version\": 4294967297"),
                                     with("\"last_ids\": {\n  \"", "\"last_ids\": {\n  \"0"),
                                     with("\"last_ids\": {\n  \"", "\"last_ids\": {\n  \"x")}) {
    ASSERT_TRUE(files_->MakeDirectories("changed").ok());
    ASSERT_TRUE(WriteFileAtomically(*files_, SchedulerStatePath("changed"), changed).ok());
    EXPECT_EQ(ReadSchedulerState(*files_, "changed").status().code(), Code::kCorruption);
  }
}

// A consistent state may still belong to another job.
TEST_F(SchedulerStateTest, AStateOfOtherShardsIsSaidAndNotUsed) {
  SchedulerState state = Training();
  state.view.shards.owner.resize(2);
  ASSERT_TRUE(WriteSchedulerState(*files_, "out", state).ok());
  cluster_->StartScheduler();
  EXPECT_TRUE(cluster_->Noticed("scheduler.state has 2 shards, the job 4"));
  EXPECT_FALSE(cluster_->Noticed("the scheduler is back"));
}

}  // namespace
}  // namespace hdps
