// Tests the memory that a server predicts, and the limit that it keeps.
#include "server/server_memory_limit.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "common/job/job_file.h"
#include "common/job/model_graph.h"
#include "common/job/spec/cluster_spec.h"
#include "common/job/spec/table_spec.h"
#include "common/job/spec/train_spec.h"
#include "common/platform/random.h"
#include "common/protocol/command_messages.h"
#include "common/protocol/row_messages.h"
#include "common/telemetry/process_usage.h"
#include "common/telemetry/samples.h"
#include "server_harness.h"
#include "tests/logged_lines.h"

namespace hdps {
namespace {

using testing::HasSubstr;

Job JobWith(const std::vector<std::string>& overrides) {
  Result<Job> job = ParseJob(R"({"data": {"format": "criteo", "train": ["a.tsv"]},
                                 "model": {"type": "wide_deep", "embedding_dim": 16}})",
                             "job.json", overrides);
  EXPECT_TRUE(job.ok()) << job.status().message();
  return job.ok() ? *std::move(job) : Job();
}

MemoryLimitOptions OptionsOf(uint64_t expected_rows = 0) {
  MemoryLimitOptions options;
  options.spill_folder = testing::TempDir() + "/row_memory_" + std::to_string(NewPeerId().value);
  options.own_shards = 32;
  options.num_workers = 1;
  options.expected_rows = expected_rows;
  return options;
}

TEST(ServerMemoryLimit, ForeseesRowsThatItIsToldOf) {
  const MemoryPlan plan =
      PlanMemory(JobWith({"cluster.join_tables=false"}), OptionsOf(3'200'000), 30 << 20);
  // Deep: 16 weights and 32 floats of state, 64-byte lines; wide: 3 floats. Each has an index of
  // 2^18 slots per shard, and whole pages, huge ones from 2 MiB on; one shard in six has one more.
  EXPECT_NEAR(double(plan.rows), 32. * ((20 << 20) + 293 * 4096 + 2 * (16 << 18) + (2 << 20) / 6.4),
              1 << 17);
  EXPECT_EQ(plan.disk, 0u);
  EXPECT_EQ(plan.process, 30u << 20);
  EXPECT_EQ(plan.total(), plan.process + plan.requests + plan.dense + plan.rows);
  // Under one index a row is 51 floats in 208 bytes. They end shortly before a huge page, so nearly
  // every shard has one more.
  const MemoryPlan joined = PlanMemory(JobWith({}), OptionsOf(3'200'000), 30 << 20);
  EXPECT_NEAR(double(joined.rows), 32. * (100'000 * 208 + (2 << 20) + (16 << 18)), 1 << 17);
  MemoryLimitOptions half = OptionsOf(3'200'000);
  half.own_shards = 16;
  EXPECT_EQ(PlanMemory(JobWith({}), half, 0).rows, joined.rows / 2);
  EXPECT_EQ(PlanMemory(JobWith({}), half, 0).requests, plan.requests / 2);
}

TEST(ServerMemoryLimit, RefusesWhatTheSettingsAskBeyondTheMachine) {
  const Job job = JobWith({"model.policy.admit_after=2", "model.policy.admit_sketch_bytes=100TiB",
                           "model.hidden=[65536,65536]"});
  const std::vector<MemoryPart> all = MemoryOfServers(job, 32), half = MemoryOfServers(job, 16);
  // Lazy Adam has two floats of state per weight, and little else.
  const double weights = 4.0 * static_cast<double>(DenseFloats(job));
  EXPECT_NEAR(static_cast<double>(all[0].bytes), 3 * weights, 0.02 * weights);
  EXPECT_EQ(all[1].bytes, uint64_t{200} << 40);  // Both tables together.
  EXPECT_EQ(half[0].bytes, all[0].bytes / 2);
  EXPECT_EQ(half[1].bytes, all[1].bytes / 2);
  const auto made = ServerMemoryLimit::Make(job, OptionsOf(), *NewMemoryFileSystem());
  ASSERT_EQ(made.status().code(), Code::kInvalidArgument);
  EXPECT_THAT(made.status().message(),
              HasSubstr("server 0 cannot have the memory that the job asks for: 200 TiB for "
                        "sketches of keys without a row (policy.admit_sketch_bytes); there are "));
}

TEST(ServerMemoryLimit, ForeseesDenseLayersAndTheirRequests) {
  const Job small = JobWith({"model.hidden=[64]"}), large = JobWith({"model.hidden=[4096]"});
  const double weights = 4.0 * static_cast<double>(DenseFloats(large) - DenseFloats(small));
  const MemoryPlan before = PlanMemory(small, OptionsOf(), 0);
  MemoryLimitOptions options = OptionsOf();
  const MemoryPlan one = PlanMemory(large, options, 0);
  // Adam has two floats of state per weight; every shard has some spare space.
  EXPECT_NEAR(static_cast<double>(one.dense - before.dense), 3 * weights, 0.1 * weights);
  // Weights and gradients of two steps, and the weights of the step that is kept.
  EXPECT_NEAR(static_cast<double>(one.requests - before.requests), 5 * weights, 1);
  options.num_workers = 3;
  EXPECT_NEAR(static_cast<double>(PlanMemory(large, options, 0).requests - one.requests),
              2 * 5 * 4.0 * static_cast<double>(DenseFloats(large)), 1);
  const Job reduced = JobWith({"model.hidden=[4096]", "parallel.dense_exchange=allreduce"});
  EXPECT_EQ(PlanMemory(reduced, options, 0).dense, 0u);
}

TEST(ServerMemoryLimit, WhatHasArrivedIsPartOfIt) {
  PeerLimits limits;
  const uint64_t all = limits.all_held_bytes_max, one = limits.held_bytes_max;
  HoldWithinLimit(JobWith({}), &limits);
  EXPECT_EQ(limits.all_held_bytes_max, all);
  HoldWithinLimit(JobWith({"cluster.memory_limit=100GiB"}), &limits);
  EXPECT_EQ(limits.all_held_bytes_max, all) << "never more than was allowed";
  HoldWithinLimit(JobWith({"cluster.memory_limit=6GiB"}), &limits);
  EXPECT_EQ(limits.all_held_bytes_max, uint64_t{3} << 30);
  EXPECT_EQ(limits.held_bytes_max, one);
  HoldWithinLimit(JobWith({"cluster.memory_limit=56MiB"}), &limits);
  EXPECT_EQ(limits.all_held_bytes_max, 64u << 20);
  EXPECT_EQ(limits.held_bytes_max, 64u << 20) << "one may hold all of it";
}

TEST(ServerMemoryLimit, UnderALimitRowsGetTheRest) {
  const Job job = JobWith({"cluster.memory_limit=1GiB", "model.policy.admit_after=2",
                           "model.policy.admit_sketch_bytes=8MiB"});
  const MemoryPlan plan = PlanMemory(job, OptionsOf(), 30 << 20);
  EXPECT_EQ(plan.total(), 1ull << 30);
  EXPECT_EQ(plan.disk, 64ull << 20);
  EXPECT_EQ(plan.sketches, 16ull << 20);  // The sketches of both tables.
  EXPECT_GT(plan.rows, 800ull << 20);
  EXPECT_THAT(plan.Text(), HasSubstr("= 1.00 GiB"));
  // The cap is below what would fit.
  const Job capped = JobWith({"cluster.memory_limit=1GiB", "model.policy.max_rows=32000"});
  EXPECT_LT(PlanMemory(capped, OptionsOf(1'000'000'000), 0).rows, 32ull << 20);
}

TEST(ServerMemoryLimit, WithoutALimitThereIsNone) {
  const std::unique_ptr<FileSystem> files = NewPosixFileSystem();
  const Result<std::unique_ptr<ServerMemoryLimit>> memory =
      ServerMemoryLimit::Make(JobWith({}), OptionsOf(), *files);
  ASSERT_TRUE(memory.ok());
  EXPECT_EQ(*memory, nullptr);
}

TEST(ServerMemoryLimit, RefusesALimitThatLeavesNoRoomAndSaysWhichDoes) {
  const std::unique_ptr<FileSystem> files = NewPosixFileSystem();
  const MemoryLimitOptions options = OptionsOf();
  const Result<std::unique_ptr<ServerMemoryLimit>> refused =
      ServerMemoryLimit::Make(JobWith({"cluster.memory_limit=2MiB"}), options, *files);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.status().code(), Code::kInvalidArgument);
  const std::string& message = refused.status().message();
  EXPECT_THAT(message, HasSubstr("cluster.memory_limit: 2.00 MiB"));
  const std::string mark = "give at least ";
  const size_t at = message.find(mark);
  ASSERT_NE(at, message.npos) << message;
  EXPECT_FALSE(std::filesystem::exists(options.spill_folder));
  // A tenth more, because the text has three figures.
  const double mib = std::stod(message.substr(at + mark.size())) * 1.1;
  const std::string enough = "cluster.memory_limit=" + std::to_string(mib) + "MiB";
  const Result<std::unique_ptr<ServerMemoryLimit>> made =
      ServerMemoryLimit::Make(JobWith({enough}), options, *files);
  ASSERT_TRUE(made.ok()) << made.status().message();
  EXPECT_TRUE(std::filesystem::exists(options.spill_folder + "/server_0"));
}

// The index of rows on disk is in memory: with so many rows the limit may be too small for it
// alone. The server says so before the rows come, with a sufficient limit.
TEST(ServerMemoryLimit, RefusesALimitThatCannotBeKeptWithTheRowsToCome) {
  const std::unique_ptr<FileSystem> files = NewPosixFileSystem();
  const auto with_limit = [](uint64_t bytes) {
    return JobWith({"cluster.memory_limit=" + std::to_string(bytes)});
  };
  constexpr uint64_t kLimit = 128 << 20, kRows = 40'000'000;
  const MemoryLimitOptions unknown = OptionsOf(), many = OptionsOf(kRows);
  EXPECT_EQ(WhyLimitIsTooSmall(with_limit(kLimit), unknown, 20 << 20), "");
  EXPECT_EQ(WhyLimitIsTooSmall(with_limit(kLimit), OptionsOf(kRows / 10), 20 << 20), "");
  const MemoryPlan plan = PlanMemory(with_limit(kLimit), many, 20 << 20);
  EXPECT_GT(plan.spilled, 4 * kRows);  // Bytes of both tables, which share one index.
  EXPECT_LT(plan.spilled, 6 * kRows);
  const Result<std::unique_ptr<ServerMemoryLimit>> refused =
      ServerMemoryLimit::Make(with_limit(kLimit), many, *files);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.status().code(), Code::kInvalidArgument);
  const std::string why = WhyLimitIsTooSmall(with_limit(kLimit), many, 20 << 20);
  EXPECT_THAT(why, HasSubstr("cluster.memory_limit: 128 MiB"));
  EXPECT_THAT(why, HasSubstr("find the rows that are on disk"));
  // The named limit is enough, plus a tenth because the text has three figures; and so is the named
  // number of servers.
  const std::string mark = "give at least ";
  const size_t at = why.find(mark);
  ASSERT_NE(at, why.npos) << why;
  const double mib = std::stod(why.substr(at + mark.size()));
  EXPECT_NE(WhyLimitIsTooSmall(with_limit(uint64_t(mib * 0.9) << 20), many, 20 << 20), "");
  EXPECT_EQ(WhyLimitIsTooSmall(with_limit(uint64_t(mib * 1.1) << 20), many, 20 << 20), "");
  const size_t servers_at = why.find(", or ");
  ASSERT_NE(servers_at, why.npos) << why;
  const size_t servers = std::stoul(why.substr(servers_at + 5));
  MemoryLimitOptions share = many;
  share.own_shards = (32 + servers - 1) / servers;
  EXPECT_EQ(WhyLimitIsTooSmall(with_limit(kLimit), share, 20 << 20), "");
  share.own_shards = (32 + servers - 2) / (servers - 1);
  EXPECT_NE(WhyLimitIsTooSmall(with_limit(kLimit), share, 20 << 20), "");
  // With a cap on the rows it is enough.
  const Job capped = JobWith({"cluster.memory_limit=128MiB", "model.policy.max_rows=1000000"});
  EXPECT_EQ(WhyLimitIsTooSmall(capped, many, 20 << 20), "");
}

// Rows that are kept for a save have table numbers of their own.
TEST(ServerMemoryLimit, RefusesMoreTablesThanItsDiskHasNumbersFor) {
  Job job = JobWith({"cluster.memory_limit=8GiB"});
  job.tables.insert(job.tables.begin(), 32768, job.tables.front());
  const auto made = ServerMemoryLimit::Make(job, OptionsOf(), *NewMemoryFileSystem());
  ASSERT_FALSE(made.ok());
  EXPECT_EQ(made.status().code(), Code::kInvalidArgument);
  EXPECT_THAT(made.status().message(), HasSubstr("at most 32768 tables, and this one has 3277"));
}

// A job that was saved with more rows continues, with a warning.
TEST(ServerMemoryLimit, WarnsOfACheckpointsRows) {
  const std::unique_ptr<FileSystem> files = NewPosixFileSystem();
  const Result<std::unique_ptr<ServerMemoryLimit>> memory =
      ServerMemoryLimit::Make(JobWith({"cluster.memory_limit=128MiB"}), OptionsOf(), *files);
  ASSERT_TRUE(memory.ok());
  LoggedLines lines;
  (*memory)->WarnIfTooSmallFor(8'000'000);  // Of both tables together.
  EXPECT_EQ(lines.text(), "");
  (*memory)->WarnIfTooSmallFor(80'000'000);
  EXPECT_THAT(lines.text(), HasSubstr("a checkpoint of 80000000 rows"));
  EXPECT_THAT(lines.text(), HasSubstr("give at least"));
}

TEST(ServerMemoryLimit, TheJobsFolderGoesFirst) {
  const std::unique_ptr<FileSystem> files = NewPosixFileSystem();
  const std::string folder = OptionsOf().spill_folder + "_job";
  const Job job = JobWith({"cluster.memory_limit=1GiB", "cluster.spill_path=" + folder});
  const MemoryLimitOptions options = OptionsOf();
  {
    const Result<std::unique_ptr<ServerMemoryLimit>> memory =
        ServerMemoryLimit::Make(job, options, *files);
    ASSERT_TRUE(memory.ok()) << memory.status().message();
    EXPECT_TRUE(std::filesystem::exists(folder + "/server_0"));
    EXPECT_FALSE(std::filesystem::exists(options.spill_folder));
  }
  EXPECT_FALSE(std::filesystem::exists(folder + "/server_0"));
}

TEST(ServerMemoryLimit, ItsFolderIsNobodyElses) {
  const std::unique_ptr<FileSystem> files = NewPosixFileSystem();
  const Job job = JobWith({"cluster.memory_limit=1GiB"});
  MemoryLimitOptions options = OptionsOf();
  options.host = "here:71";
  auto memory = ServerMemoryLimit::Make(job, options, *files);
  ASSERT_TRUE(memory.ok()) << memory.status().message();
  options.host = "there:72";
  const Status second = ServerMemoryLimit::Make(job, options, *files).status();
  EXPECT_EQ(second.code(), Code::kInvalidArgument);
  EXPECT_THAT(second.message(),
              HasSubstr("cluster.spill_path: the folder " + options.spill_folder));
  EXPECT_THAT(second.message(), HasSubstr("is held by server_0 (here:71)"));
  options.rank = 1;
  EXPECT_TRUE(ServerMemoryLimit::Make(job, options, *files).ok());
  memory->reset();
  options.rank = 0;
  EXPECT_TRUE(ServerMemoryLimit::Make(job, options, *files).ok());
  EXPECT_TRUE(std::filesystem::is_empty(options.spill_folder)) << "nothing is left behind";
}

TEST(ServerMemoryLimit, KnowsWhatTheProcessTakes) {
  const std::unique_ptr<FileSystem> files = NewPosixFileSystem();
  const uint64_t before = ResidentBytes(*files);
  EXPECT_GT(before, 1u << 20);
  const std::vector<char> more(64 << 20, 1);
  EXPECT_GE(ResidentBytes(*files), before + (60 << 20));
  EXPECT_GE(PeakResidentBytes(*files), before + (60 << 20));
  EXPECT_EQ(more.back(), 1);
  EXPECT_EQ(ResidentBytes(*NewMemoryFileSystem()), 0u);
}

// With a disk behind the rows, requests run in the background.
class SlowDisk : public testing::Test {
 protected:
  static Job JobOf() {
    Job job = TestJob(Mode::kAsync);
    job.cluster.memory_limit = 1 << 30;
    job.cluster.spill_path = testing::TempDir() + "/slow_disk_" + std::to_string(NewPeerId().value);
    job.cluster.heartbeat_ms = 1;  // One heartbeat per tick.
    return job;
  }
  // Sends a request that waits for the disk.
  uint64_t Push(uint64_t sequence) { return server_.Push(0, sequence, 0, 1, {{0, 1, {7}, {1}}}); }

  LaterExecutor executor_;
  ServerHarness server_{{.job = JobOf(), .workers = 1}, nullptr, &executor_};
};

TEST_F(SlowDisk, DoesNotSilenceTheServer) {
  server_.TakeHeartbeats();
  const uint64_t first = Push(0);
  const uint64_t second = Push(1);
  for (int tick = 0; tick < 3; ++tick) server_.Tick();
  EXPECT_EQ(server_.TakeHeartbeats(), 3u);
  EXPECT_FALSE(server_.TakeReply<PushAck>(first).has_value());
  EXPECT_EQ(executor_.RunAll(), 1u);
  server_.Tick();
  EXPECT_EQ(server_.Ack(first).code, Code::kOk);
  EXPECT_EQ(executor_.RunAll(), 1u);
  server_.Tick();
  EXPECT_EQ(server_.Ack(second).code, Code::kOk);
  EXPECT_EQ(server_.node().counters().pushes, 2u);
}

TEST_F(SlowDisk, TheEndOfARequestWakesTheLoop) {
  const uint64_t first = Push(0);
  const uint64_t second = Push(1);
  const int before = server_.wakes();
  EXPECT_EQ(executor_.RunAll(), 1u);
  EXPECT_EQ(server_.wakes(), before + 1);
  server_.Collect();
  EXPECT_EQ(server_.Ack(first).code, Code::kOk);
  EXPECT_EQ(executor_.RunAll(), 1u);  // The end of the first started the second.
  EXPECT_EQ(server_.wakes(), before + 2);
  server_.Collect();
  EXPECT_EQ(server_.Ack(second).code, Code::kOk);
}

TEST_F(SlowDisk, ACommandIsAnsweredWithoutATick) {
  Command digest;
  digest.id = {50};
  digest.command = CommandKind::kDigest;
  server_.FromPeer(kSchedulerPeer, digest, 0);
  server_.replies().clear();
  EXPECT_EQ(executor_.RunAll(), 1u);
  server_.Collect();
  ASSERT_EQ(server_.replies().size(), 1u);
  EXPECT_EQ(server_.replies()[0].frame.header.kind, static_cast<uint16_t>(CommandDone::kKind));
}

TEST_F(SlowDisk, RepeatsAndStrangersDoNotPileUp) {
  Push(0);
  const PushRequest push = server_.PushOf(1, 0, 1, {{0, 1, {7}, {1}}});
  for (int repeat = 0; repeat < 5; ++repeat) {
    server_.FromPeer(ServerHarness::WorkerPeer(0), push, 77);
    server_.FromPeer(PeerId{4711}, push, 78 + repeat);
  }
  size_t ran = 0;
  for (size_t more = 1; more > 0; ran += more) {
    more = executor_.RunAll();
    server_.Tick();
  }
  EXPECT_EQ(ran, 2u);
  EXPECT_EQ(server_.Ack(77).code, Code::kOk);
}

TEST_F(SlowDisk, ACommandSendsThoseThatWaitAway) {
  const uint64_t first = Push(0);
  const uint64_t second = Push(1);
  Command digest;
  digest.id = {50};
  digest.command = CommandKind::kDigest;
  server_.FromPeer(kSchedulerPeer, digest, 0);
  EXPECT_EQ(executor_.RunAll(), 1u);
  server_.Tick();
  EXPECT_EQ(server_.Ack(first).code, Code::kOk);
  EXPECT_EQ(server_.Ack(second).code, Code::kUnavailable);
  EXPECT_EQ(executor_.RunAll(), 1u);  // Runs the command.
  server_.Tick();
  EXPECT_EQ(server_.node().counters().pushes, 1u);
}

TEST(ServerFigures, TellWhatWentToDiskAndCameBack) {
  Job job = TestJob(Mode::kAsync);
  job.tables[1] = TableOf("deep", 256, job.tables[0].optimizer.record->kind);
  job.cluster.memory_limit = 24 << 20;
  job.cluster.spill_path = testing::TempDir() + "/figures_" + std::to_string(NewPeerId().value);
  ServerHarness server({.job = job, .workers = 1});
  constexpr size_t kKeys = 500;
  const auto values = [&](FigureId figure) {
    std::vector<double> found;
    const FigureLayout layout(FigureRole::kServer, 2);
    for (const Sample& sample : SamplesOf(layout, server.node().ReadFigures(), {"wide", "deep"})) {
      if (sample.figure == figure) found.push_back(sample.value);
    }
    return found;
  };
  constexpr FigureId kRows = FigureNamed("hdps_server_rows");
  constexpr FigureId kBytes = FigureNamed("hdps_server_row_bytes");
  constexpr FigureId kFetched = FigureNamed("hdps_server_rows_fetched_total");
  EXPECT_EQ(values(FigureNamed("hdps_server_memory_limit_bytes")).at(0), 24 << 20);
  uint64_t pushed = 0;
  for (; pushed < 100 && values(kRows)[3] == 0; ++pushed) {
    TableRows rows = {1, 256, {}, std::vector<float>(kKeys * 256, 1)};
    for (Key key = 0; key < kKeys; ++key) rows.keys.push_back(pushed * kKeys + key);
    server.Push(0, pushed, static_cast<Clock>(pushed), 1, {rows});
  }
  const std::vector<double> rows = values(kRows);
  ASSERT_GT(rows[3], 0) << pushed << " pushes";
  EXPECT_EQ(rows[2] + rows[3], static_cast<double>(pushed * kKeys));
  EXPECT_EQ(values(kBytes)[3], rows[3] * (256 + 1) * sizeof(float));
  EXPECT_EQ(values(kFetched)[1], 0);
  TableRows all = {1, 256, {}, {}};
  for (Key key = 0; key < kKeys; ++key) all.keys.push_back(key);
  server.Pull(0, static_cast<Clock>(pushed), PullMode::kRead, {all});
  EXPECT_GT(values(kFetched)[1], 0);
}

}  // namespace
}  // namespace hdps
