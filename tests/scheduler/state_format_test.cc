// Tests scheduler.state of earlier versions: read, and written again to the byte.
#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>

#include "common/platform/file_system.h"
#include "scheduler/scheduler_state.h"

namespace hdps {
namespace {

// Every field has its own value, so that exchanged fields are noticed.
SchedulerState EveryField() {
  SchedulerState state;
  state.job_digest = 11;
  state.num_servers = 2;
  state.num_workers = 1;
  state.wanted_servers = 3;
  state.wanted_workers = 2;
  state.view.view = {7};
  state.view.restarts = 1;
  state.view.placed = {6};
  state.view.servers = {{PeerId{21}, 0, "tcp://a:1"}, {PeerId{22}, 1, "tcp://b:1"}};
  state.view.workers = {{PeerId{23}, 0, ""}};
  state.view.shards.owner = {ServerId{0}, ServerId{1}};
  state.view.backups = {{ServerId{0}, state.view.servers[1]}};
  state.processes = {{PeerId{21}, {"host-a", "a 1"}},
                     {PeerId{22}, {"host-b", "b 1"}},
                     {PeerId{23}, {"host-c", "c 1"}}};
  state.last_ids = {{PeerId{21}, 31}, {PeerId{23}, 33}};
  state.entries = {{"key", std::string("v\xff", 2)}};
  state.boot = "boot";
  JobState& job = state.job;
  job.phase = JobPhase::kTrain;
  job.plan.position = {120, 2, 100};
  job.plan.saved = 110;
  job.plan.stopped = job.plan.full_save = true;
  job.watched.best = {"auc of the first set", 90, 0.75, 1, 110};
  job.watched.rate = 0.5;
  job.epoch_rows = 41;
  job.data_files = {{42, 43}};
  job.stop = true;
  job.reached = 125;
  job.scheduler_left = true;
  job.trained = {44, 4.5};
  job.epoch = {46, 4.75};
  job.last_epoch = {48, 4.875};
  job.examples_before = 49;
  job.examples_worked = 50;
  job.counts_before = {51, 52, 53, 54, 55};
  job.training_ms = 56;
  job.wall_ms = 57;
  JobState::Order order{PeerId{23}, Command()};
  order.command.command = CommandKind::kTrain;
  order.command.id = {33};
  order.command.until = 130;
  order.command.epoch = 2;
  order.command.epoch_start = 100;
  order.command.rate = 0.5;
  job.orders = {order};
  RunSummary& summary = job.summary;
  summary.failures_survived = 61;
  summary.leaves = 82;
  summary.steps_again = 62;
  summary.examples_again = 63;
  summary.bad_rows = 64;
  summary.unknown_ids = 81;
  summary.digest[0] = 65;
  summary.digest[1] = 66;
  summary.rows = 67;
  summary.dense_rows = 68;
  summary.dense_parameters = 69;
  summary.row_counts = {71, 72, 73, 74, 75};
  summary.row_bytes = 76;
  summary.server_bytes_max = 77;
  summary.resumed_from = 78;
  summary.evaluation = Evaluation{79, 0.5, 0.25, "", {{"auc", 0.5, ""}}};
  summary.eval_sets = {{"late", Evaluation{80, 0.125, 0.375, "one class", {}}}};
  return state;
}

constexpr const char* kWritten = R"({
 "backups": {
  "groups": [
   0
  ],
  "members": [
   {
    "address": "tcp://b:1",
    "host": "host-b",
    "peer": 22,
    "process": "b 1",
    "rank": 1
   }
  ]
 },
 "boot": "boot",
 "entries": {
  "key": [
   118,
   255
  ]
 },
 "job": {
  "clock": 120,
  "counts_before": [
   51,
   52,
   53,
   54,
   55
  ],
  "data_files": [
   [
    42,
    43
   ]
  ],
  "due": [],
  "ending": false,
  "epoch": 2,
  "epoch_rows": 41,
  "epoch_start": 100,
  "epoch_sums": {
   "examples": 46,
   "loss_sum": 4.75
  },
  "examples_before": 49,
  "examples_worked": 50,
  "full_save": true,
  "last_epoch_sums": {
   "examples": 48,
   "loss_sum": 4.875
  },
  "orders": [
   {
    "epoch": 2,
    "epoch_start": 100,
    "id": 33,
    "rate": 0.5,
    "until": 130,
    "worker": 23
   }
  ],
  "phase": 9,
  "reached": 125,
  "saved": 110,
  "scheduler_left": true,
  "stop": true,
  "stopped": true,
  "stopped_early": false,
  "summary": {
   "bad_rows": 64,
   "counts": [
    71,
    72,
    73,
    74,
    75
   ],
   "dense_parameters": 69,
   "dense_rows": 68,
   "digest": [
    65,
    66
   ],
   "eval_sets": [
    {
     "evaluation": {
      "auc": 0.125,
      "examples": 80,
      "figures": [],
      "logloss": 0.375,
      "no_auc": "one class"
     },
     "name": "late"
    }
   ],
   "evaluation": {
    "auc": 0.5,
    "examples": 79,
    "figures": [
     {
      "about": "",
      "value": 0.5,
      "word": "auc"
     }
    ],
    "logloss": 0.25,
    "no_auc": ""
   },
   "examples_again": 63,
   "failures_survived": 61,
   "leaves": 82,
   "resumed_from": 78,
   "row_bytes": 76,
   "rows": 67,
   "server_bytes_max": 77,
   "steps_again": 62,
   "unknown_ids": 81
  },
  "trained": {
   "examples": 44,
   "loss_sum": 4.5
  },
  "training_ms": 56,
  "wall_ms": 57,
  "watched": {
   "best": {
    "best": 0.75,
    "best_clock": 90,
    "last_clock": 110,
    "of": "auc of the first set",
    "since": 1
   },
   "best_auc": 0.0,
   "best_logloss": 0.0,
   "early_stop": {
    "best": 0.0,
    "best_clock": -1,
    "last_clock": -1,
    "of": "",
    "since": 0
   },
   "plateau": {
    "best": 0.0,
    "best_clock": -1,
    "last_clock": -1,
    "of": "",
    "since": 0
   },
   "rate": 0.5
  }
 },
 "job_digest": 11,
 "last_ids": {
  "21": 31,
  "23": 33
 },
 "num_servers": 2,
 "num_workers": 1,
 "placed": 6,
 "restarts": 1,
 "servers": [
  {
   "address": "tcp://a:1",
   "host": "host-a",
   "peer": 21,
   "process": "a 1",
   "rank": 0
  },
  {
   "address": "tcp://b:1",
   "host": "host-b",
   "peer": 22,
   "process": "b 1",
   "rank": 1
  }
 ],
 "shard_owner": [
  0,
  1
 ],
 "version": 1,
 "view": 7,
 "wanted_servers": 3,
 "wanted_workers": 2,
 "workers": [
  {
   "address": "",
   "host": "host-c",
   "peer": 23,
   "process": "c 1",
   "rank": 0
  }
 ]
}
)";

TEST(StateFormat, EveryFieldIsWrittenAsBefore) {
  const std::unique_ptr<FileSystem> files = NewMemoryFileSystem();
  ASSERT_TRUE(files->MakeDirectories("out").ok());
  ASSERT_TRUE(WriteSchedulerState(*files, "out", EveryField()).ok());
  EXPECT_EQ(*ReadWholeFile(*files, SchedulerStatePath("out"), 1 << 20), kWritten);
}

TEST(StateFormat, WhatWasWrittenBeforeIsReadAndWrittenAgain) {
  const std::unique_ptr<FileSystem> files = NewMemoryFileSystem();
  ASSERT_TRUE(files->MakeDirectories("out").ok());
  ASSERT_TRUE(WriteFileAtomically(*files, SchedulerStatePath("out"), kWritten).ok());
  const auto state = ReadSchedulerState(*files, "out");
  ASSERT_TRUE(state.ok() && state->has_value()) << state.status().message();
  ASSERT_TRUE(files->MakeDirectories("again").ok());
  ASSERT_TRUE(WriteSchedulerState(*files, "again", **state).ok());
  EXPECT_EQ(*ReadWholeFile(*files, SchedulerStatePath("again"), 1 << 20), kWritten);
}

// Fields that only some jobs have.
TEST(StateFormat, FieldsThatMayBeEmptyAreReadAgain) {
  const std::unique_ptr<FileSystem> files = NewMemoryFileSystem();
  SchedulerState written = EveryField();
  JobState& job = written.job;
  job.init = "other/checkpoint/step_0000000020";
  job.trained_ms = 91;
  job.step_times = {{3, 40}, {5, 90}};
  job.offsets = {{0, 70}, {4, 0}};
  ASSERT_FALSE(job.orders.empty());
  job.orders[0].command.offsets = {{0, 60}};
  job.orders[0].command.since = 50;
  job.orders[0].command.begun = true;
  job.summary.progressive = Evaluation{92, 0.75, 0.5, "", {{"calibration", 1.25, ""}}};
  ASSERT_TRUE(files->MakeDirectories("out").ok());
  ASSERT_TRUE(WriteSchedulerState(*files, "out", written).ok());
  const auto state = ReadSchedulerState(*files, "out");
  ASSERT_TRUE(state.ok() && state->has_value()) << state.status().message();
  const JobState& read = (*state)->job;
  EXPECT_EQ(read.init, job.init);
  EXPECT_EQ(read.trained_ms, 91);
  EXPECT_EQ(read.step_times, job.step_times);
  EXPECT_EQ(read.offsets, job.offsets);
  EXPECT_EQ(read.orders[0].command.offsets, job.orders[0].command.offsets);
  EXPECT_EQ(read.orders[0].command.since, 50);
  EXPECT_TRUE(read.orders[0].command.begun);
  ASSERT_TRUE(read.summary.progressive);
  EXPECT_EQ(read.summary.progressive->examples, 92u);
  EXPECT_EQ(read.summary.progressive->figures, job.summary.progressive->figures);
}

}  // namespace
}  // namespace hdps
