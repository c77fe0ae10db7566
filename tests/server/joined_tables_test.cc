// Tests a server whose tables share rows against one whose tables do not: every digest, row and
// file is the same, whatever a request looks like.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "common/job/job_file.h"
#include "common/job/spec/cluster_spec.h"
#include "common/job/spec/table_spec.h"
#include "common/job/tables/joined_tables.h"
#include "common/platform/random.h"
#include "common/protocol/command_messages.h"
#include "common/protocol/manifest.h"
#include "common/protocol/row_messages.h"
#include "tests/logged_lines.h"
#include "tests/server/server_harness.h"

namespace hdps {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

Job JobWith(std::vector<std::string> overrides, const std::string& model = "wide_deep") {
  overrides.push_back("cluster.shards=8");
  overrides.push_back("model.type=" + model);
  Result<Job> job = ParseJob(R"({"data": {"format": "criteo", "train": ["a.tsv"]},
                                 "checkpoint": {"delta_every_steps": 2},
                                 "model": {"embedding_dim": 4}})",
                             "job.json", overrides);
  EXPECT_TRUE(job.ok()) << job.status().message();
  return job.ok() ? *std::move(job) : Job();
}

TEST(TablesThatShareRows, FollowFromFeaturesAndPolicies) {
  EXPECT_THAT(TablesThatShareRows(JobWith({})), ElementsAre(0, 0, 2));
  for (const char* model : {"fm", "deepfm", "nfm", "xdeepfm", "fibinet"}) {
    const Job job = JobWith({}, model);
    const std::vector<uint32_t> groups = TablesThatShareRows(job);
    ASSERT_GE(groups.size(), 2u) << model;
    EXPECT_EQ(groups[1], 0u) << model;
    EXPECT_THAT(TablesKeptApart(job), ElementsAre()) << model;
  }
  EXPECT_THAT(TablesThatShareRows(JobWith({"model.policy.max_rows=1000"})), ElementsAre(0, 0, 2));
  EXPECT_THAT(TablesThatShareRows(JobWith({"cluster.join_tables=false"})), ElementsAre(0, 1, 2));
}

TEST(TablesThatShareRows, WhatContradictsIsNamed) {
  const auto why = [](const std::vector<std::string>& overrides) {
    const Job job = JobWith(overrides);
    EXPECT_EQ(TablesThatShareRows(job)[1], 1u);
    const std::vector<std::string> sentences = TablesKeptApart(job);
    EXPECT_EQ(sentences.size(), 1u);
    return sentences.empty() ? "" : sentences[0];
  };
  EXPECT_EQ(why({"model.policy.admit_after=2"}),
            "tables 'wide' and 'deep' are read by the same features, but keep their rows apart: "
            "'wide' counts keys of its own (admit_after)");
  EXPECT_THAT(why({"model.policy.admit_probability=0.5"}), HasSubstr("admit_probability"));
  EXPECT_THAT(why({"model.policy.max_bytes=1GiB"}), HasSubstr("max_bytes"));
  EXPECT_THAT(why({"model.policy.max_rows=9", "model.policy.evict_by=norm"}), HasSubstr("norm"));
  EXPECT_THAT(why({"model.slice_mode=table_column_slice"}), HasSubstr("by feature or column"));
}

// A server with shared rows and one without, which are given the same steps.
class JoinedTables : public testing::Test {
 protected:
  explicit JoinedTables(std::vector<std::string> overrides = {}) {
    overrides.push_back("model.policy.evict_after_steps=5");
    joined_job_ = JobWith(overrides);
    overrides.push_back("cluster.join_tables=false");
    apart_job_ = JobWith(overrides);
    joined_ = ServerOf(joined_job_);
    apart_ = ServerOf(apart_job_);
  }
  std::unique_ptr<ServerHarness> ServerOf(const Job& job) {
    return std::make_unique<ServerHarness>(ServerSetting{.job = job}, files_.get());
  }

  // Makes the second table's keys those of the first, as a worker sends them.
  template <typename Request>
  static Request SentOnce(Request request) {
    EXPECT_EQ(request.tables[0].shard_counts, request.tables[1].shard_counts);
    request.tables[1].keys_of = 1;
    request.tables[1].shard_counts.clear();
    const std::span<const Key> keys = request.keys.template As<Key>();
    request.keys = Buffer::CopyOf<Key>(keys.first(request.tables[0].num_keys));
    return request;
  }
  static std::vector<TableRows> RandomRows(Random& random) {
    std::vector<TableRows> rows = {{0, 1, {}, {}}, {1, 4, {}, {}}};
    for (int i = 0; i < 40; ++i) rows[0].keys.push_back(MixBits(random.Below(500)));
    std::ranges::sort(rows[0].keys);
    rows[0].keys.erase(std::unique(rows[0].keys.begin(), rows[0].keys.end()), rows[0].keys.end());
    rows[1].keys = rows[0].keys;
    for (TableRows& table : rows) {
      for (size_t i = 0; i < table.keys.size() * table.row_floats; ++i) {
        table.floats.push_back(static_cast<float>(random.Normal()));
      }
    }
    return rows;
  }
  // Trains two workers; half of the requests carry the keys twice.
  void Train(ServerHarness& server, Clock from, Clock until) {
    for (Clock clock = from; clock < until; ++clock) {
      for (const uint32_t worker : {0u, 1u}) {
        Random random(static_cast<uint64_t>(clock * 2 + worker));
        const std::vector<TableRows> rows = RandomRows(random);
        PushRequest push = server.PushOf(static_cast<uint64_t>(clock), clock, 4, rows);
        if (random.Below(2) == 0) push = SentOnce(std::move(push));
        const uint64_t id = ++request_;
        server.FromPeer(ServerHarness::WorkerPeer(worker), push, id);
        EXPECT_EQ(server.Ack(id).code, Code::kOk);
      }
    }
    for (const uint32_t worker : {0u, 1u}) server.Advance(worker, until);
  }
  static std::string Folder(const std::string& of, Clock clock) {
    return "/" + of + "/checkpoint/" + CheckpointName(clock);
  }
  std::vector<SavedFile> Save(ServerHarness& server, const std::string& of, Clock clock,
                              Clock since = 0) {
    const CommandDone done = server.Run(CommandKind::kSave, Folder(of, clock), clock, since);
    EXPECT_EQ(done.code, Code::kOk) << done.message;
    Manifest manifest;
    manifest.job_name = server.job().name;
    manifest.job_json = PrintJob(server.job());
    manifest.tables_digest = TablesDigest(server.job());
    manifest.num_shards = server.job().cluster.shards;
    manifest.clock = clock;
    if (since > 0) {
      manifest.base_clock = since;
      manifest.base_checksum = ManifestChecksum(*ReadManifest(*files_, Folder(of, since)));
    }
    manifest.files = done.files;
    EXPECT_TRUE(WriteManifest(*files_, Folder(of, clock), manifest).ok());
    return done.files;
  }

  const std::unique_ptr<FileSystem> files_ = NewMemoryFileSystem();
  Job joined_job_, apart_job_;
  std::unique_ptr<ServerHarness> joined_, apart_;
  uint64_t request_ = 1u << 20;  // Apart from the harness's own numbers.
};

TEST_F(JoinedTables, StepsRowsAndFilesAreTheSame) {
  EXPECT_EQ(TablesDigest(joined_job_), TablesDigest(apart_job_));
  EXPECT_EQ(JobDigest(joined_job_), JobDigest(apart_job_));
  for (ServerHarness* server : {joined_.get(), apart_.get()}) Train(*server, 0, 4);
  const std::vector<SavedFile> whole = Save(*joined_, "joined", 4),
                               same = Save(*apart_, "apart", 4);
  for (ServerHarness* server : {joined_.get(), apart_.get()}) Train(*server, 4, 20);
  const std::vector<SavedFile> delta = Save(*joined_, "joined", 20, 4);
  const std::vector<SavedFile> same_delta = Save(*apart_, "apart", 20, 4);
  const uint64_t digest = apart_->Digest();
  EXPECT_EQ(joined_->Digest(), digest);
  for (size_t f = 0; f < whole.size(); ++f) {
    EXPECT_EQ(whole[f].checksum, same[f].checksum);
    EXPECT_EQ(delta[f].checksum, same_delta[f].checksum);
    EXPECT_THAT(delta[f].name, HasSubstr(".delta"));
  }
  Random random(1);
  const std::vector<Key> keys = RandomRows(random)[0].keys;
  for (const uint32_t table : {0u, 1u}) {
    EXPECT_EQ(joined_->Read(table, keys), apart_->Read(table, keys));
  }
  // Each loads what the other saved.
  for (const Job* job : {&joined_job_, &apart_job_}) {
    for (const char* of : {"joined", "apart"}) {
      const std::unique_ptr<ServerHarness> server = ServerOf(*job);
      const CommandDone done = server->Run(CommandKind::kLoad, Folder(of, 20), 20);
      ASSERT_EQ(done.code, Code::kOk) << done.message;
      EXPECT_EQ(server->Digest(), digest);
    }
  }
}

TEST_F(JoinedTables, OneReplyHasTheRowsOfBoth) {
  Train(*joined_, 0, 6);
  Random random(3);
  std::vector<TableRows> rows = RandomRows(random);
  for (TableRows& table : rows) table.floats.clear();
  for (const DType format : {DType::kFp32, DType::kBf16}) {
    PullRequest twice = joined_->PullOf(6, PullMode::kRead, rows);
    twice.format = format;
    joined_->FromPeer(ServerHarness::WorkerPeer(0), twice, ++request_);
    const auto a = joined_->TakeReply<PullReply>(request_);
    joined_->FromPeer(ServerHarness::WorkerPeer(0), SentOnce(twice), ++request_);
    const auto b = joined_->TakeReply<PullReply>(request_);
    ASSERT_TRUE(a && b && a->code == Code::kOk && b->code == Code::kOk);
    EXPECT_EQ(b->tables[1].num_keys, rows[1].keys.size());
    ASSERT_EQ(a->rows.size(), b->rows.size());
    EXPECT_TRUE(std::ranges::equal(a->rows.bytes(), b->rows.bytes()));
  }
}

TEST_F(JoinedTables, AChangeOfOtherKeysInOneTableIsRefused) {
  Random random(3);
  std::vector<TableRows> rows = RandomRows(random);
  const std::vector<TableRows> one = {rows[1]};
  EXPECT_EQ(apart_->Ack(apart_->Push(0, 0, 0, 4, one)).code, Code::kOk);
  const PushAck refused = joined_->Ack(joined_->Push(0, 0, 0, 4, one));
  EXPECT_EQ(refused.code, Code::kCorruption);
  EXPECT_EQ(refused.message,
            "tables 'wide' and 'deep' share rows, so they change for the same keys; this request "
            "has others for one than for the other");
  rows[0].keys.back() ^= uint64_t{1} << 40;
  std::ranges::sort(rows[0].keys);
  EXPECT_EQ(joined_->Ack(joined_->Push(0, 0, 0, 4, rows)).code, Code::kCorruption);
  joined_->FromPeer(ServerHarness::WorkerPeer(0), joined_->StoreOf(0, 0, one), ++request_);
  EXPECT_EQ(joined_->TakeReply<StoreAck>(request_)->code, Code::kCorruption);
  EXPECT_EQ(joined_->Run(CommandKind::kDigest).rows, 0u);
}

// Where the tables do not have the same keys in a checkpoint, or rows of them would not leave at
// the same time, each has rows of its own after the load.
TEST_F(JoinedTables, ACheckpointOfTablesThatDifferIsLoadedApart) {
  Train(*apart_, 0, 3);
  // Worker 1's keys of clock 1 again: no new row, but a later update of one table. Then new rows.
  for (const uint64_t seed : {3u, 100u}) {
    Random random(seed);
    const std::vector<TableRows> rows = RandomRows(random);
    const Clock clock = seed == 3 ? 3 : 4;
    for (const uint32_t worker : {0u, 1u}) {
      const uint64_t push = apart_->Push(worker, static_cast<uint64_t>(clock), clock, 4, {rows[1]});
      EXPECT_EQ(apart_->Ack(push).code, Code::kOk);
      apart_->Advance(worker, clock + 1);
    }
    Save(*apart_, "apart", clock + 1);
    const std::unique_ptr<ServerHarness> loaded = ServerOf(joined_job_);
    const std::unique_ptr<ServerHarness> same = ServerOf(apart_job_);
    for (ServerHarness* server : {loaded.get(), same.get()}) {
      LoggedLines lines;
      const CommandDone done =
          server->Run(CommandKind::kLoad, Folder("apart", clock + 1), clock + 1);
      ASSERT_EQ(done.code, Code::kOk) << done.message;
      EXPECT_EQ(lines.text().find("their rows are kept apart") != std::string::npos,
                server == loaded.get());
      EXPECT_EQ(server->Digest(), apart_->Digest());
      Train(*server, clock + 1, 16);
    }
    EXPECT_EQ(loaded->Digest(), same->Digest());
  }
}

}  // namespace
}  // namespace hdps
