// Tests saves of what changed since a checkpoint, where the server knows it.
#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "common/job/job_file.h"
#include "common/job/optimizers/optimizers.h"
#include "common/job/spec/checkpoint_spec.h"
#include "common/job/spec/cluster_spec.h"
#include "common/job/spec/init_spec.h"
#include "common/job/spec/table_spec.h"
#include "common/job/spec/train_spec.h"
#include "common/platform/random.h"
#include "common/protocol/command_messages.h"
#include "common/protocol/manifest.h"
#include "gtest/gtest.h"
#include "tests/server/server_harness.h"

namespace hdps {
namespace {

Job DeltaJob(Mode mode, uint64_t delta_every_steps) {
  Job job = TestJob(mode);
  job.tables = {TableOf("wide", 1, OptimizerKind::kFtrl),
                TableOf("deep", 4, OptimizerKind::kAdagrad)};
  for (TableSpec& table : job.tables) table.init = {InitKind::kUniform, 0.1f};
  job.tables[1].policy.evict_after_steps = 3;
  job.checkpoint.delta_every_steps = delta_every_steps;
  return job;
}

class DeltaSaves : public testing::TestWithParam<Mode> {
 protected:
  void Make(uint64_t delta_every_steps = 4) {
    job_ = DeltaJob(GetParam(), delta_every_steps);
    server_ = NewServer();
  }
  std::unique_ptr<ServerHarness> NewServer() {
    return std::make_unique<ServerHarness>(ServerSetting{.job = job_, .workers = 2}, files_.get());
  }
  // Trains two workers; in async worker 1 is behind until the last of the steps.
  void Train(Clock from, Clock until) {
    for (const uint32_t worker : {0u, 1u}) {
      for (Clock clock = from; clock < until; ++clock) {
        Random random(static_cast<uint64_t>(clock * 2 + worker));
        std::vector<TableRows> rows = {{0, 1, {}, {}}, {1, 4, {}, {}}};
        for (TableRows& table : rows) {
          for (uint64_t i = 0; i < 30; ++i) {
            table.keys.push_back(MixBits(random.Below(400)));
            std::sort(table.keys.begin(), table.keys.end());
            table.keys.erase(std::unique(table.keys.begin(), table.keys.end()), table.keys.end());
          }
          for (size_t i = 0; i < table.keys.size() * table.row_floats; ++i) {
            table.floats.push_back(static_cast<float>(random.Normal()));
          }
        }
        server_->Push(worker, static_cast<uint64_t>(clock), clock, 4, rows);
        if (GetParam() != Mode::kSync) server_->Advance(worker, clock + 1);
      }
    }
    if (GetParam() != Mode::kSync) return;
    for (const uint32_t worker : {0u, 1u}) server_->Advance(worker, until);
  }
  static std::string Folder(Clock clock) { return "/out/checkpoint/" + CheckpointName(clock); }
  // Saves, and writes the manifest unless `commits` is false. Returns the number of files with only
  // changes.
  size_t Save(Clock clock, Clock since, bool commits = true) {
    const CommandDone done = server_->Run(CommandKind::kSave, Folder(clock), clock, since);
    EXPECT_EQ(done.code, Code::kOk) << done.message;
    Manifest manifest;
    manifest.job_name = job_.name;
    manifest.tables_digest = TablesDigest(job_);
    manifest.num_shards = job_.cluster.shards;
    manifest.clock = clock;
    manifest.files = done.files;
    const auto changes =
        static_cast<size_t>(std::count_if(done.files.begin(), done.files.end(), HoldsChanges));
    if (!commits) return changes;
    if (changes > 0) {
      manifest.base_clock = since;
      manifest.base_checksum = ManifestChecksum(*ReadManifest(*files_, Folder(since)));
    }
    const Status written = WriteManifest(*files_, Folder(clock), manifest);
    EXPECT_TRUE(written.ok()) << written.message();
    return changes;
  }
  void ExpectLoads(Clock clock) {
    const std::unique_ptr<ServerHarness> other = NewServer();
    const CommandDone done = other->Run(CommandKind::kLoad, Folder(clock), clock);
    ASSERT_EQ(done.code, Code::kOk) << done.message;
    EXPECT_EQ(other->Digest(), server_->Digest()) << "clock " << clock;
  }

  const std::unique_ptr<FileSystem> files_ = NewMemoryFileSystem();
  Job job_;
  std::unique_ptr<ServerHarness> server_;
};
INSTANTIATE_TEST_SUITE_P(Modes, DeltaSaves, testing::Values(Mode::kSync, Mode::kAsync, Mode::kSsp));

TEST_P(DeltaSaves, WhatIsLoadedIsWhatWasThere) {
  Make();
  const size_t shards = job_.cluster.shards;
  EXPECT_EQ(Save(0, 0), 0u);
  for (Clock clock = 4; clock <= 24; clock += 4) {
    Train(clock - 4, clock);
    EXPECT_EQ(Save(clock, clock == 4 ? 0 : clock - 4), clock == 4 ? 0 : shards);
    ExpectLoads(clock);
  }
  EXPECT_GT(server_->Run(CommandKind::kDigest).counts.evicted, 0u);
  const uint64_t digest = server_->Digest();
  // A server that has loaded knows what changed since, and trains and saves as if it had always
  // been there.
  server_ = NewServer();
  ASSERT_EQ(server_->Run(CommandKind::kLoad, Folder(24), 24).code, Code::kOk);
  EXPECT_EQ(server_->Digest(), digest);
  Train(24, 28);
  EXPECT_EQ(Save(28, 24), shards);
  ExpectLoads(28);
}

TEST_P(DeltaSaves, WhoDoesNotKnowTheChangesSavesEverything) {
  Make();
  Train(0, 4);
  EXPECT_EQ(Save(4, 0), 0u);
  Train(4, 8);
  EXPECT_EQ(Save(8, 4, /*commits=*/false), job_.cluster.shards);
  Train(8, 12);
  // Changes since 8 are known, but there is no checkpoint of it.
  EXPECT_EQ(Save(12, 4), 0u);
  ExpectLoads(12);
  Train(12, 16);
  EXPECT_EQ(Save(16, 12), job_.cluster.shards);
  ExpectLoads(16);
}

TEST_P(DeltaSaves, WithoutTheSettingNothingIsRemembered) {
  Make(0);
  Train(0, 4);
  EXPECT_EQ(Save(4, 0), 0u);
  Train(4, 8);
  EXPECT_EQ(Save(8, 4), 0u);
}

TEST_P(DeltaSaves, ADamagedLinkLeavesTheServerEmptyAndIsNamed) {
  Make();
  Train(0, 4);
  Save(4, 0);
  Train(4, 8);
  Save(8, 4);
  Train(8, 12);
  Save(12, 8);
  const std::string path = Folder(8) + "/shard_001.delta";
  std::string bytes = *ReadWholeFile(*files_, path, 1 << 24);
  bytes[bytes.size() / 2] ^= 1;
  ASSERT_TRUE(WriteFileAtomically(*files_, path, bytes).ok());
  const std::unique_ptr<ServerHarness> other = NewServer();
  const CommandDone done = other->Run(CommandKind::kLoad, Folder(12), 12);
  EXPECT_EQ(done.code, Code::kCorruption);
  EXPECT_NE(done.message.find(path), std::string::npos) << done.message;
  EXPECT_EQ(other->Run(CommandKind::kDigest).rows, 0u);
}

}  // namespace
}  // namespace hdps
